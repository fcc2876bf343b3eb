// What every situation needs: a check that ends the program with the line that failed, and a look at whether memory is there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define M (1UL << 20)
#define P ((size_t)sysconf(_SC_PAGESIZE))
#define CHECK(what)                                                                                     \
    do {                                                                                                \
        if (!(what)) {                                                                                  \
            dprintf(2, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #what, errno);                     \
            _exit(1);                                                                                   \
        }                                                                                               \
    } while (0)

static inline char *region(size_t len) {
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static sigjmp_buf back;
static void caught(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

// Can this byte be read?
static inline int readable(const volatile char *at) {
    signal(SIGSEGV, caught);
    if (sigsetjmp(back, 1))
        return 0;
    (void)*at;
    return 1;
}

// A value for every page of a region that tells it from all others.
static inline void fill(char *at, size_t len) {
    for (size_t i = 0; i < len; i += P)
        *(uint64_t *)(at + i) = i ^ 0x5a5a5a5a;
}
static inline int filled(const char *at, size_t from, size_t to) {
    for (size_t i = from; i < to; i += P)
        if (*(const uint64_t *)(at + i) != (i ^ 0x5a5a5a5a))
            return 0;
    return 1;
}
static inline int zero(const char *at, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (at[i])
            return 0;
    return 1;
}
