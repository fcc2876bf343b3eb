/* Follows a random ring through its memory and tells its steps, in FILE (by a rename) or on standard output.
   chase MIB FILE|- [SECONDS]: for so long, or for ever. A SIGTERM ends it, and then it says so in FILE.ended. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODE = 64, STEPS = 20000 };

static uint64_t seed = 42;
static volatile sig_atomic_t asked_to_end;

static void on_term(int signal) {
    (void)signal;
    asked_to_end = 1;
}

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

static int tell(const char *name, uint64_t steps) {
    char fresh[4096];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    FILE *file = !strcmp(name, "-") ? stdout : fopen(fresh, "w");
    if (!file) return 0;
    fprintf(file, "steps %llu\n", (unsigned long long)steps);
    if (file == stdout) return fflush(stdout) == 0;
    return fclose(file) == 0 && rename(fresh, name) == 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    signal(SIGTERM, on_term);
    uint64_t size = strtoull(argv[1], NULL, 10) << 20, steps = 0;
    char *memory = malloc(size);
    make_ring(memory, size / NODE);
    time_t until = argc > 3 ? time(NULL) + atol(argv[3]) : 0;
    void **at = (void **)memory;
    while (!asked_to_end && (!until || time(NULL) < until)) {
        for (int i = 0; i < STEPS; i++) at = *at;
        __asm__ volatile("" : : "r"(at));
        if (!tell(argv[2], steps += STEPS)) return 3;
    }
    char ended[4096];
    snprintf(ended, sizeof ended, "%s.ended", argv[2]);
    if (asked_to_end && strcmp(argv[2], "-")) fclose(fopen(ended, "w"));
    return 0;
}
