/* One kernel a run, each of a few seconds: `kernels NAME`. Loops as in textbooks; none of them was used to make the model. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }

static uint64_t updates(void) { /* random read-modify-write in 512 MiB */
    uint64_t words = 1ull << 26, *at = calloc(words, 8);
    for (uint64_t i = 0; i < 60000000; i++) at[next() & (words - 1)] ^= i;
    return at[7];
}
static uint64_t list(void) { /* a shuffled linked list of 128 MiB */
    struct node { struct node *to; uint64_t value[3]; } *nodes = malloc(sizeof *nodes << 22);
    uint32_t count = 1 << 22, *order = malloc(4ull * count);
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) { uint32_t j = next() % i, t = order[i]; order[i] = order[j]; order[j] = t; }
    for (uint32_t i = 0; i < count; i++) { nodes[order[i]].to = &nodes[order[(i + 1) % count]]; nodes[order[i]].value[0] = i; }
    uint64_t sum = 0;
    struct node *at = nodes;
    for (int i = 0; i < 25000000; i++, at = at->to) sum += at->value[0];
    return sum;
}
static uint64_t tree(void) { /* an unbalanced binary tree of 3 million random keys, looked up */
    struct node { uint64_t key; uint32_t child[2]; } *nodes = calloc(3000001, sizeof *nodes);
    uint32_t used = 1;
    nodes[0].key = next();
    for (int i = 0; i < 4000000; i++) {
        uint64_t key = i < 3000000 ? next() : nodes[next() % used].key;
        uint32_t at = 0, to;
        while ((to = nodes[at].child[key > nodes[at].key]) && nodes[at].key != key) at = to;
        if (i < 3000000) { nodes[used].key = key; nodes[at].child[key > nodes[at].key] = used++; }
    }
    return used;
}
static uint64_t probe(void) { /* open addressing, 256 MiB, filled to a half */
    uint64_t slots = 1ull << 25, *table = calloc(slots, 8), found = 0;
    for (uint64_t i = 1; i <= slots / 2; i++) { uint64_t at = (i * 0x9e3779b97f4a7c15ull) >> 39; while (table[at]) at = (at + 1) & (slots - 1); table[at] = i; }
    for (int n = 0; n < 30000000; n++) { uint64_t i = next() % slots + 1, at = (i * 0x9e3779b97f4a7c15ull) >> 39; while (table[at] && table[at] != i) at = (at + 1) & (slots - 1); found += table[at] != 0; }
    return found;
}
static uint64_t sparse(void) { /* sparse matrix times vector: 20 random columns a row */
    uint32_t rows = 3000000, *column = malloc(80ull * rows);
    double *x = malloc(8ull * rows), *y = malloc(8ull * rows), *value = malloc(160ull * rows);
    for (uint64_t i = 0; i < 20ull * rows; i++) { column[i] = next() % rows; value[i] = 1.0 / (i + 1); }
    for (uint32_t i = 0; i < rows; i++) x[i] = i;
    for (int turn = 0; turn < 8; turn++) for (uint32_t i = 0; i < rows; i++) { double sum = 0; for (int j = 0; j < 20; j++) sum += value[20ull * i + j] * x[column[20ull * i + j]]; y[i] = sum; }
    return (uint64_t)y[9];
}
static uint64_t dense(void) { /* matrix product, blocked by 64 */
    enum { N = 1344 };
    double *a = malloc(8ull * N * N), *b = malloc(8ull * N * N), *c = calloc(N * N, 8);
    for (int i = 0; i < N * N; i++) a[i] = b[i] = i % 17;
    for (int ii = 0; ii < N; ii += 64) for (int kk = 0; kk < N; kk += 64) for (int jj = 0; jj < N; jj += 64)
        for (int i = ii; i < ii + 64; i++) for (int k = kk; k < kk + 64; k++) for (int j = jj; j < jj + 64; j++) c[i * N + j] += a[i * N + k] * b[k * N + j];
    return (uint64_t)c[5];
}
static int by_value(const void *a, const void *b) { uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b; return (x > y) - (x < y); }
static uint64_t quick(void) { /* qsort of 12 million words */
    uint64_t count = 12000000, *at = malloc(8 * count);
    for (uint64_t i = 0; i < count; i++) at[i] = next();
    qsort(at, count, 8, by_value);
    return at[3];
}
static uint64_t heap(void) { /* a binary heap of 16 million words as a queue */
    uint64_t count = 16000000, *at = malloc(8 * count);
    for (uint64_t i = 0; i < count; i++) at[i] = i * 1000;
    for (int n = 0; n < 8000000; n++) {
        uint64_t value = at[0] + next() % 16000000000ull, i = 0, child;
        while ((child = 2 * i + 1) < count) { child += child + 1 < count && at[child + 1] < at[child]; if (at[child] >= value) break; at[i] = at[child]; i = child; }
        at[i] = value;
    }
    return at[0];
}
static uint64_t sieve(void) { /* primes below 400 million, a byte each */
    uint32_t most = 400000000;
    uint8_t *composite = calloc(most, 1);
    uint64_t primes = 0;
    for (uint64_t i = 2; i < most; i++) { if (composite[i]) continue; primes++; if (i < 20000) for (uint64_t j = i * i; j < most; j += i) composite[j] = 1; }
    return primes;
}
static uint64_t transpose(void) { /* columns to rows, 256 MiB, row by row */
    enum { N = 4096 };
    double *a = malloc(8ull * N * N), *b = malloc(8ull * N * N);
    for (uint64_t i = 0; i < (uint64_t)N * N; i++) a[i] = i;
    for (int turn = 0; turn < 12; turn++) { for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) b[(uint64_t)i * N + j] = a[(uint64_t)j * N + i]; a[turn] = b[turn]; }
    return (uint64_t)b[77];
}
static uint64_t stencil(void) { /* seven-point stencil in 320^3 floats */
    enum { N = 320 };
    float *a = calloc((uint64_t)N * N * N, 4), *b = calloc((uint64_t)N * N * N, 4);
    a[N * N + N + 1] = 1;
    for (int turn = 0; turn < 40; turn++) {
        for (int z = 1; z < N - 1; z++) for (int y = 1; y < N - 1; y++) for (int x = 1; x < N - 1; x++) { uint64_t i = ((uint64_t)z * N + y) * N + x; b[i] = (a[i - 1] + a[i + 1] + a[i - N] + a[i + N] + a[i - N * N] + a[i + N * N]) / 6; }
        float *t = a; a = b; b = t;
    }
    return (uint64_t)a[9];
}
static uint64_t ranks(void) { /* page rank over 2 million vertices and 24 million random edges, by pushes */
    uint32_t count = 2000000, *to = malloc(48ull * count);
    float *rank = malloc(4ull * count), *sum = calloc(count, 4);
    for (uint64_t i = 0; i < 12ull * count; i++) to[i] = next() % count;
    for (uint32_t i = 0; i < count; i++) rank[i] = 1;
    for (int turn = 0; turn < 10; turn++) { for (uint32_t i = 0; i < count; i++) for (int j = 0; j < 12; j++) sum[to[12ull * i + j]] += rank[i] / 12; float *t = rank; rank = sum; sum = t; memset(sum, 0, 4ull * count); }
    return (uint64_t)rank[1];
}

int main(int argc, char **argv) {
    static const struct { const char *name; uint64_t (*run)(void); } all[] = {
        {"updates", updates}, {"list", list}, {"tree", tree}, {"probe", probe}, {"sparse", sparse}, {"dense", dense},
        {"quick", quick}, {"heap", heap}, {"sieve", sieve}, {"transpose", transpose}, {"stencil", stencil}, {"ranks", ranks}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc == 2 && !strcmp(argv[1], all[i].name)) return printf("%llu\n", (unsigned long long)all[i].run()) < 0;
    return fprintf(stderr, "kernels updates|list|tree|probe|sparse|dense|quick|heap|sieve|transpose|stencil|ranks\n"), 2;
}
