/* Follows a random ring through its memory and tells its steps, in FILE (by a rename) or on standard output.
   chase MIB FILE|- [SECONDS]: for so long, or for ever. A SIGTERM ends it, and then it says so in FILE.ended. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../common/ring.h"

static volatile sig_atomic_t asked_to_end;

static void on_term(int signal) {
    (void)signal;
    asked_to_end = 1;
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
        at = walk(at);
        if (!tell(argv[2], steps += STEPS)) return 3;
    }
    char ended[4096];
    snprintf(ended, sizeof ended, "%s.ended", argv[2]);
    if (asked_to_end && strcmp(argv[2], "-")) fclose(fopen(ended, "w"));
    return 0;
}
