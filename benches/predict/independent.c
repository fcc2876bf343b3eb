/* Independent loads at random over 256 MiB, with so many additions between two of them: ns for each load.
 *
 *     independent base|thp ADDITIONS LOADS        (additions: 0, 40, 120, 240, or "chain": each load waits for the one before)
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SIZE (256ul << 20)
#define HUGE (2ul << 20)
#define LINES (SIZE / 64)

static uint64_t state = 88172645463325252ull;

static inline uint64_t line_at_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state & (LINES - 1)) * 8;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Four chains of additions. */
#define ADD(rounds)                                                                                                            \
    __asm__ volatile(".rept " #rounds "\n\tadd $1, %%r8\n\tadd $1, %%r9\n\tadd $1, %%r10\n\tadd $1, %%r11\n\t.endr" ::       \
                         : "r8", "r9", "r10", "r11")
#define RUN(between)                                                                                                           \
    for (long load = 0; load < loads; load++) {                                                                                \
        sum += memory[line_at_random()];                                                                                       \
        between;                                                                                                               \
    }

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: independent base|thp ADDITIONS LOADS\n");
        return 2;
    }
    char *whole = mmap(NULL, SIZE + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    uint64_t *memory = (uint64_t *)(((uintptr_t)whole + HUGE - 1) & ~(HUGE - 1));
    madvise(memory, SIZE, strcmp(argv[1], "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(memory, 0, SIZE);
    const long loads = atol(argv[3]);
    uint64_t sum = 0;
    const double begun = now();
    if (strcmp(argv[2], "chain") == 0) {
        for (long load = 0; load < loads; load++) {
            /* All of memory is zero, but the CPU does not know. */
            sum = memory[(line_at_random() + sum) & (LINES * 8 - 1)];
        }
    } else {
        switch (atoi(argv[2])) {
        case 0: RUN() break;
        case 40: RUN(ADD(10)) break;
        case 120: RUN(ADD(30)) break;
        case 240: RUN(ADD(60)) break;
        default: fprintf(stderr, "independent: expected 0, 40, 120 or 240 additions, or chain\n"); return 2;
        }
    }
    printf("%s %s: %.1f ns (%llu)\n", argv[1], argv[2], (now() - begun) / loads, (unsigned long long)sum);
    return 0;
}
