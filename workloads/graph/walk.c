/* Random walks over a graph of a few GiB, as tools for circuits do them: each step reads the neighbours of a node and the weight of
 * the one that is next, and both lie anywhere. Usage: walk MEBIBYTES MILLIONS_OF_STEPS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEGREE 8
#define LENGTH 4096 /* steps of a walk, before the next begins at a random node */

static uint64_t state = 88172645463325252u;

/* Marsaglia's xorshift. */
static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char **argv)
{
    size_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
    uint64_t steps = (argc > 2 ? strtoull(argv[2], NULL, 10) : 10) * 1000000;
    size_t nodes = (mebibytes << 20) / (DEGREE * sizeof(uint32_t) + sizeof(double));
    uint32_t *edges = malloc(nodes * DEGREE * sizeof *edges);
    double *weights = malloc(nodes * sizeof *weights);
    if (!edges || !weights || nodes < 2) {
        fprintf(stderr, "walk: no memory of %zu MiB\n", mebibytes);
        return 1;
    }
    for (size_t i = 0; i < nodes * DEGREE; i++)
        edges[i] = (uint32_t)(draw() % nodes);
    for (size_t i = 0; i < nodes; i++)
        weights[i] = (double)(draw() % 1000) / 1000;
    struct timespec began, ended;
    double sum = 0;
    size_t at = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (uint64_t i = 0; i < steps; i++) {
        at = i % LENGTH == 0 ? draw() % nodes : edges[at * DEGREE + draw() % DEGREE];
        sum += weights[at];
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    printf("steps: %.4f million per CPU second (%.1f)\n", (double)steps / 1e6 / seconds, sum);
    free(edges);
    free(weights);
    return 0;
}
