/* A process that can be held up: it fills memory with base pages, then maps, touches and unmaps one page again and
 * again, which waits for whoever walks its page tables.
 *
 * Usage: held MIB SECONDS     Prints `ready` once filled, then per second of its run: rounds, longest round in us,
 *                             rounds over 1 ms. Ends after SECONDS.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t bytes = strtoull(argv[1], 0, 10) << 20;
    double seconds = strtod(argv[2], 0);
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    /* So that other processes on the same CPUs do not look like pauses; without the right to it, they do. */
    struct sched_param first = {.sched_priority = 10};
    int real_time = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
    printf("ready %s\n", real_time ? "real-time" : "shared");
    fflush(stdout);
    double began = now(), second = began, longest = 0;
    long rounds = 0, long_ones = 0;
    for (;;) {
        double start = now();
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *page = 1;
        munmap(page, 4096);
        double end = now(), took = end - start;
        rounds++;
        longest = took > longest ? took : longest;
        long_ones += took > 1e-3;
        if (end - second >= 1) {
            printf("%ld %.1f %ld\n", rounds, longest * 1e6, long_ones);
            fflush(stdout);
            second = end, longest = 0, rounds = 0, long_ones = 0;
        }
        if (end - began > seconds)
            return 0;
        /* Leaves most of the CPU to whoever looks. */
        struct timespec nap = {0, 50000};
        nanosleep(&nap, 0);
    }
}
