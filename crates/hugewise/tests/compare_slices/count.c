/* count FILE MIB: reads at random in memory, in a child with a session of its own; how often goes to FILE, by a rename. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    pid_t child = fork();
    if (child) return waitpid(child, NULL, 0) < 0;
    setsid();
    size_t bytes = strtoul(argv[2], NULL, 10) << 20, words = bytes / sizeof(unsigned long);
    unsigned long *memory = malloc(bytes), at = 1, done = 0;
    char fresh[4096];
    memset(memory, 1, bytes);
    snprintf(fresh, sizeof fresh, "%s.new", argv[1]);
    for (;;) {
        for (int i = 0; i < 100000; i++) {
            at = at * 6364136223846793005UL + 1442695040888963407UL;
            at += memory[(at >> 20) % words];
        }
        FILE *file = fopen(fresh, "w");
        if (!file) return 1;
        fprintf(file, "ops=%lu\n", done += 100000);
        fclose(file);
        rename(fresh, argv[1]);
    }
}
