/* Follows a random ring through its memory and counts its steps in a file, until its standard input ends.
   chase MIB FILE [advised|locked|disabled]: with large pages from its first touch, these locked, or with none allowed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../common/ring.h"

enum { LARGE = 2 << 20 };

int main(int argc, char **argv) {
    uint64_t size = strtoull(argv[1], NULL, 10) << 20;
    const char *how = argc > 3 ? argv[3] : "";
    if (!strcmp(how, "disabled")) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    char *all = mmap(NULL, size + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 2;
    char *memory = (char *)(((uintptr_t)all + LARGE - 1) & ~(uintptr_t)(LARGE - 1));
    if (!strcmp(how, "advised") || !strcmp(how, "locked")) madvise(memory, size, MADV_HUGEPAGE);
    make_ring(memory, size / NODE);
    if (!strcmp(how, "locked") && mlock(memory, size)) return 3;
    int file = open(argv[2], O_WRONLY | O_CREAT, 0600);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    void **at = (void **)memory;
    for (uint64_t steps = 0; poll(&input, 1, 0) == 0; steps += STEPS) {
        at = walk(at);
        char line[32];
        int length = snprintf(line, sizeof line, "steps %020llu\n", (unsigned long long)steps);
        if (pwrite(file, line, length, 0) != length) return 4;
    }
    return 0;
}
