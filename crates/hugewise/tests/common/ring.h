/* A random ring through memory: each node holds the address of the next, so that every step waits for the one before. */
#include <stdint.h>
#include <stdlib.h>

enum { NODE = 64, STEPS = 20000 };

static uint64_t seed = 42;

static uint64_t next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

/* One cycle through all nodes, by Sattolo's shuffle. */
static void make_ring(char *memory, uint64_t nodes) {
    uint32_t *order = malloc(nodes * sizeof *order);
    for (uint64_t i = 0; i < nodes; i++) order[i] = i;
    for (uint64_t i = nodes - 1; i > 0; i--) {
        uint64_t j = next() % i;
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (uint64_t i = 0; i < nodes; i++) *(void **)(memory + i * NODE) = memory + order[i] * (uint64_t)NODE;
    free(order);
}

/* So many steps on; where that leads is not to be optimized away. */
static void **walk(void **at) {
    for (int i = 0; i < STEPS; i++) at = *at;
    __asm__ volatile("" : : "r"(at));
    return at;
}
