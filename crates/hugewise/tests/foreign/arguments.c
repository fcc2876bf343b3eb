/* A process a part of whose arguments lies in a file: arguments FILE LONG. LONG has more than two pages. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    size_t page = sysconf(_SC_PAGESIZE);
    if (argc != 3 || strlen(argv[2]) < 2 * page) return 77;
    int file = open(argv[1], O_RDONLY);
    void *within = (void *)(((uintptr_t)argv[2] + page - 1) & ~(uintptr_t)(page - 1));
    if (mmap(within, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) return 77;
    puts("up");
    fflush(stdout);
    for (;;) pause();
}
