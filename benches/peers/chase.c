// An independent pointer chase, to hold hugewise's figures against: another language, another way to shuffle (a stored
// Fisher-Yates order), another clock (CLOCK_MONOTONIC), plain compiler output for the loop.
// Usage: chase BYTES base|thp SECONDS  ->  median, 0.5 % quantile and mean of ns per load, over blocks of about 30 us
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: chase BYTES base|thp SECONDS\n"), 2;
    size_t bytes = strtoull(argv[1], 0, 10), lines = bytes / 64, border = 2 << 20;
    int thp = !strcmp(argv[2], "thp");
    double seconds = atof(argv[3]);
    size_t span = (bytes + border - 1) / border * border;
    char *map = mmap(0, span + border, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return perror("mmap"), 2;
    char *memory = (char *)(((uintptr_t)map + border - 1) / border * border);
    madvise(memory, span, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(memory, 0, span);
    uint32_t *order = malloc(lines * sizeof *order);
    for (size_t i = 0; i < lines; i++) order[i] = i;
    uint64_t state = 88172645463325252ull;
    for (size_t i = lines - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        size_t j = state % (i + 1);
        uint32_t keep = order[i];
        order[i] = order[j], order[j] = keep;
    }
    for (size_t i = 0; i < lines; i++)
        *(void **)(memory + 64ull * order[i]) = memory + 64ull * order[(i + 1) % lines];
    free(order);
    enum { MOST = 100000 };
    static double blocks[MOST];
    void **at = (void **)memory;
    size_t steps = 256, n = 0;
    for (size_t i = 0; i < lines && i < 4000000; i++) at = *at; // warm
    double begun = now();
    while (n < MOST && (now() - begun < seconds * 1e9 || n < 20)) {
        double start = now();
        for (size_t i = 0; i < steps; i += 8) {
            at = *at; at = *at; at = *at; at = *at; at = *at; at = *at; at = *at; at = *at;
        }
        double passed = now() - start;
        blocks[n++] = passed / steps;
        if (n == 1 && passed < 2e4) steps = (size_t)(steps * 3e4 / passed) / 8 * 8, n = 0;
    }
    if (at == 0) puts(""); // keeps the loop
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += blocks[i];
    qsort(blocks, n, sizeof *blocks, ascending);
    printf("%.3f %.3f %.3f\n", blocks[n / 2], blocks[n / 200], sum / n);
    return 0;
}
