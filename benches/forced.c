/* Loads on chosen CPUs, for forced.py: forced SECONDS LOAD...
 *
 * A load is CPUS:BYTES:BURST:SLEEP. CPUS is a number, or * for all. A load chases through BYTES (0: it computes), BURST thousands of steps at a time
 * (exponentially distributed about that mean), and then sleeps SLEEP microseconds (likewise). A sleep of 0 never sleeps. Each load is one thread;
 * a line for each says how many thousands of steps it made a second, and how often a second it was preempted. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { STEPS = 1000, LINE = 64, STRATA = 16 };

struct lengths {
    int left, strata[STRATA];
};

struct load {
    pthread_t thread;
    char cpus[16];
    uint64_t bytes, burst, sleep_us, seed, done;
    long preempted;
    struct lengths bursts, sleeps;
    void **ring;
};

static atomic_int begun, ended;
static pthread_barrier_t ready;

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

/* Exponentially distributed lengths about a mean of 1. Of 16 in a row each has its own sixteenth of the distribution, so that few of them have the mean
 * of many. */
static double exponential(struct lengths *lengths, uint64_t *seed) {
    if (lengths->left == 0) {
        for (int i = 0; i < STRATA; i++) lengths->strata[i] = i;
        for (int i = STRATA - 1; i > 0; i--) {
            int other = next(seed) % (i + 1), kept = lengths->strata[i];
            lengths->strata[i] = lengths->strata[other];
            lengths->strata[other] = kept;
        }
        lengths->left = STRATA;
    }
    double within = ((next(seed) >> 11) + 1) * 0x1p-53;
    return -log((lengths->strata[--lengths->left] + within) / STRATA);
}

/* One ring through all lines of the memory, in random order. */
static void **ring(uint64_t bytes, uint64_t *seed) {
    uint64_t count = bytes / LINE;
    char *memory = aligned_alloc(4096, bytes);
    uint64_t *order = malloc(count * sizeof *order);
    if (!memory || !order) exit(2);
    for (uint64_t i = 0; i < count; i++) order[i] = i;
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t other = next(seed) % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < count; i++)
        *(void **)(memory + order[i] * LINE) = memory + order[(i + 1) % count] * LINE;
    free(order);
    return (void **)memory;
}

static void *run(void *given) {
    struct load *load = given;
    if (load->cpus[0] != '*') {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(load->cpus), &set);
        if (pthread_setaffinity_np(pthread_self(), sizeof set, &set)) exit(2);
    }
    if (load->bytes) load->ring = ring(load->bytes, &load->seed);
    void **at = load->ring;
    volatile uint64_t kept = 0;
    uint64_t value = load->seed;
    pthread_barrier_wait(&ready);
    while (!begun) sched_yield();
    while (!ended) {
        double burst = load->sleep_us ? load->burst * exponential(&load->bursts, &load->seed) + 0.5 : 1;
        for (uint64_t left = (uint64_t)burst; left && !ended; left--) {
            if (at)
                for (int i = 0; i < STEPS; i++) at = *at;
            else
                for (int i = 0; i < STEPS; i++) value = value * 6364136223846793005u + 1442695040888963407u;
            load->done++;
        }
        kept = value + (uint64_t)(uintptr_t)at;
        if (load->sleep_us && !ended) {
            uint64_t ns = (uint64_t)(load->sleep_us * 1e3 * exponential(&load->sleeps, &load->seed));
            struct timespec pause = {ns / 1000000000, ns % 1000000000};
            nanosleep(&pause, NULL);
        }
    }
    (void)kept;
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    load->preempted = used.ru_nivcsw;
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    double seconds = atof(words[1]);
    int loads = count - 2;
    struct load *load = calloc(loads, sizeof *load);
    pthread_barrier_init(&ready, NULL, loads + 1);
    for (int i = 0; i < loads; i++) {
        load[i].seed = 88172645463325252u + 7919 * i + 104729 * (uint64_t)time(NULL);
        if (sscanf(words[i + 2], "%15[^:]:%lu:%lu:%lu", load[i].cpus, &load[i].bytes, &load[i].burst, &load[i].sleep_us) != 4) return 2;
        if (pthread_create(&load[i].thread, NULL, run, &load[i])) return 2;
    }
    pthread_barrier_wait(&ready);
    struct timespec from, until;
    clock_gettime(CLOCK_MONOTONIC, &from);
    begun = 1;
    struct timespec pause = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
    ended = 1;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double took = (until.tv_sec - from.tv_sec) + (until.tv_nsec - from.tv_nsec) / 1e9;
    for (int i = 0; i < loads; i++) pthread_join(load[i].thread, NULL);
    for (int i = 0; i < loads; i++) printf("%.3f %.3f\n", load[i].done / took, load[i].preempted / took);
    return 0;
}
