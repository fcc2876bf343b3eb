// An independent paired chase, to hold the first sentence of `hugewise checkup` against: base pages and THP by turns, on rings that
// are a stored Fisher-Yates order, by CLOCK_MONOTONIC and plain compiler output. Memory is taken anew for every turn.
// Usage: paired SECONDS BYTES [BYTES ..]  ->  a line for each size: BYTES, the time on THP as a share of that on base pages (median
// over all turns), its standard error (of a median, from the median distance to it), ns on base pages, ns on THP, turns
// A turn walks one kind for a quarter of a second and then the other; the first half of each is not counted. `base` at a time is a median over
// blocks of about 100 us.
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SIZES = 8, TURNS = 4096, BLOCKS = 1 << 16 };
static const double VISIT = 2.5e8;
static void **volatile kept; // keeps the loops

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

struct ring {
    char *map, *memory;
    size_t length;
    void **at;
};

static struct ring ring(size_t bytes, int thp) {
    size_t lines = bytes / 64, border = 2 << 20, span = (bytes + border - 1) / border * border;
    struct ring r = {.length = span + border};
    r.map = mmap(0, r.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r.map == MAP_FAILED) perror("mmap"), exit(2);
    r.memory = (char *)(((uintptr_t)r.map + border - 1) / border * border);
    madvise(r.memory, span, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(r.memory, 0, span);
    uint32_t *order = malloc(lines * sizeof *order);
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = next_random() % (i + 1);
        uint32_t keep = order[i];
        order[i] = order[j], order[j] = keep;
    }
    for (size_t i = 0; i < lines; i++)
        *(void **)(r.memory + 64ull * order[i]) = r.memory + 64ull * order[(i + 1) % lines];
    free(order);
    r.at = (void **)r.memory;
    return r;
}

// The median ns of a step over the second half of a visit.
static double visit(struct ring *r) {
    static double blocks[BLOCKS];
    void **at = r->at;
    double begun = now(), end = begun + VISIT, last = begun;
    size_t n = 0;
    while (last < end && n < BLOCKS) {
        for (int i = 0; i < 512; i += 8) {
            at = *at; at = *at; at = *at; at = *at; at = *at; at = *at; at = *at; at = *at;
        }
        double here = now();
        if (last - begun > VISIT / 2) blocks[n++] = (here - last) / 512;
        last = here;
    }
    r->at = at, kept = at;
    qsort(blocks, n, sizeof *blocks, ascending);
    return blocks[n / 2];
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 2 + SIZES) return fprintf(stderr, "usage: paired SECONDS BYTES [BYTES ..]\n"), 2;
    int sizes = argc - 2;
    static double logs[SIZES][TURNS], times[2][SIZES][TURNS];
    int turns[SIZES] = {0};
    double end = now() + atof(argv[1]) * 1e9;
    state ^= (uint64_t)now() * 2654435761u;
    while (now() < end)
        for (int s = 0; s < sizes; s++) {
            struct ring rings[2];
            for (int k = 0; k < 2; k++) rings[k] = ring(strtoull(argv[2 + s], 0, 10), k);
            if (turns[s] < TURNS) {
                int first = next_random() >> 40 & 1, n = turns[s]++;
                for (int j = 0; j < 2; j++) times[j ^ first][s][n] = visit(&rings[j ^ first]);
                logs[s][n] = log(times[1][s][n] / times[0][s][n]);
            }
            for (int k = 0; k < 2; k++) munmap(rings[k].map, rings[k].length);
        }
    for (int s = 0; s < sizes; s++) {
        int n = turns[s];
        double far[TURNS];
        qsort(logs[s], n, sizeof(double), ascending);
        double middle = logs[s][n / 2];
        for (int i = 0; i < n; i++) far[i] = fabs(logs[s][i] - middle);
        qsort(far, n, sizeof(double), ascending);
        for (int k = 0; k < 2; k++) qsort(times[k][s], n, sizeof(double), ascending);
        printf("%s %.4f %.4f %.2f %.2f %d\n", argv[2 + s], exp(middle), 1.4826 * 1.2533 * far[n / 2] / sqrt(n), times[0][s][n / 2],
               times[1][s][n / 2], n);
    }
    return 0;
}
