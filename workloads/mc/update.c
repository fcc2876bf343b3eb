/* Threads that add to random words of one table: as many misses in flight as the machine has, on every CPU.
 * Usage: update MEBIBYTES THREADS MILLIONS_OF_UPDATES_OF_EACH */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST 1024

static uint64_t *table;
static size_t words;
static uint64_t updates;

static void *work(void *number)
{
    uint64_t state = 88172645463325252u * (2 * (uintptr_t)number + 1);
    for (uint64_t i = 0; i < updates; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        /* Two threads may meet at a word; what one of them adds is lost then, and nobody reads it. */
        __atomic_store_n(&table[state % words], table[state % words] ^ state, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2;
    updates = (argc > 3 ? strtoull(argv[3], NULL, 10) : 20) * 1000000;
    words = (mebibytes << 20) / sizeof *table;
    table = malloc(words * sizeof *table);
    if (!table || threads < 1 || threads > MOST) {
        fprintf(stderr, "update: no memory of %zu MiB, or no threads\n", mebibytes);
        return 1;
    }
    for (size_t i = 0; i < words; i++)
        table[i] = i;
    struct timespec began, ended;
    pthread_t all[MOST];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (uintptr_t i = 0; i < threads; i++) {
        if (pthread_create(&all[i], NULL, work, (void *)i)) {
            fprintf(stderr, "update: a thread cannot be started\n");
            return 1;
        }
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    printf("updates: %.4f million per CPU second\n", (double)(updates * threads) / 1e6 / seconds);
    free(table);
    return 0;
}
