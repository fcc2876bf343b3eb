// Takes memory by itself: HOW MIB SECONDS.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

static char *map(size_t len, int flags) {
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t len = (size_t)atol(argv[2]) << 20;
    char *memory = NULL;
    if (!strcmp(argv[1], "pool") || !strcmp(argv[1], "need")) {
        memory = map(len, MAP_HUGETLB);
        if (!memory && !strcmp(argv[1], "need")) {
            fputs("FATAL: no huge pages\n", stderr);
            return 1;
        }
    }
    if (!memory) memory = map(len, 0);
    if (!strcmp(argv[1], "undo")) {
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
        madvise(memory, len, MADV_HUGEPAGE);
    }
    memset(memory, 1, len);
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    volatile unsigned long sum = 0;
    do {
        for (size_t at = 0; at < len; at += 4096) sum += memory[at];
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < atof(argv[3]));
    return 0;
}
