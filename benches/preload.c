// What the preload library stands in front of, where no large page is used. `malloc ROUNDS` prints nanoseconds of CPU time per round of
// malloc and free. `mmap KIB TOUCH ROUNDS PAIRS` maps and unmaps, by the C library's own functions and by those that are in front of
// them, block by block in turns, and prints both times for each pair.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef void *(*map_t)(void *, size_t, int, int, int, off_t);
typedef int (*unmap_t)(void *, size_t);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double mallocs(long rounds) {
    static void *kept[256];
    unsigned seed = 1;
    double begun = now();
    for (long i = 0; i < rounds; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned at = seed >> 8 & 255;
        free(kept[at]);
        // Mostly small; every 64th is far above the threshold of mmap.
        kept[at] = malloc(i % 64 ? 16 + (seed >> 16) % 2000 : 300000);
        *(volatile char *)kept[at] = 1;
    }
    return (now() - begun) / rounds;
}

static double maps(size_t len, int touch, long rounds, map_t map, unmap_t unmap) {
    double begun = now();
    for (long i = 0; i < rounds; i++) {
        char *a = map(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t at = 0; touch && at < len; at += 4096)
            ((volatile char *)a)[at] = 1;
        unmap(a, len);
    }
    return (now() - begun) / rounds;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "malloc") == 0) {
        printf("%.2f\n", mallocs(atol(argv[2])));
        return 0;
    }
    if (argc < 6)
        return 2;
    size_t len = atol(argv[2]) << 10;
    int touch = atoi(argv[3]);
    long rounds = atol(argv[4]);
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    map_t map = (map_t)dlsym(libc, "mmap");
    unmap_t unmap = (unmap_t)dlsym(libc, "munmap");
    for (int pair = 0; pair < atoi(argv[5]); pair++) {
        double with = 0, without = 0;
        if (pair % 2)
            with = maps(len, touch, rounds, mmap, munmap);
        without = maps(len, touch, rounds, map, unmap);
        if (pair % 2 == 0)
            with = maps(len, touch, rounds, mmap, munmap);
        printf("%.2f %.2f\n", without, with);
    }
    return 0;
}
