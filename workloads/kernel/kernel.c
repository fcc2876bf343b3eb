/* What the kernel's memory management has most work with, by workers on a CPU each: segv, page faults that a handler mends; pcd, processes
 * created and ended beside idle ones; nps, switches between two processes; fw, fork and wait. Prints the mean time of one.
 * Usage: kernel OPERATION WORKERS THOUSANDS MEBIBYTES IDLE */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MOST 1024

static char *page;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static pid_t forked(void)
{
    pid_t child = fork();
    if (child < 0)
        fail("kernel: fork");
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

static void mend(int number)
{
    (void)number;
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void faults(uint64_t count)
{
    signal(SIGSEGV, mend);
    for (uint64_t i = 0; i < count; i++) {
        mprotect(page, PAGE, PROT_NONE);
        *(volatile char *)page = 1;
    }
}

static void processes(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pid_t child = forked();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

/* A byte goes to another process on the same CPU and comes back: two switches. */
static void switches(uint64_t count)
{
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back))
        fail("kernel: pipe");
    pid_t other = forked();
    if (other == 0) {
        close(there[1]);
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    for (uint64_t i = 0; i < count; i += 2)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            fail("kernel: pipe");
    close(there[1]);
    waitpid(other, NULL, 0);
}

/* The worker of this number on its CPU, one of those that may be used. */
static void pin(unsigned number)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    unsigned left = number % (unsigned)CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || left-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: kernel OPERATION WORKERS THOUSANDS MEBIBYTES IDLE\n");
        return 2;
    }
    const char *operation = argv[1];
    unsigned workers = (unsigned)strtoul(argv[2], NULL, 10), idle = (unsigned)strtoul(argv[5], NULL, 10);
    uint64_t count = strtoull(argv[3], NULL, 10) * 1000;
    size_t resident = strtoull(argv[4], NULL, 10) << 20;
    if (workers < 1 || workers > MOST || count < 1000)
        return 2;
    double *seconds = mmap(NULL, MOST * sizeof *seconds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int gate[2];
    if (seconds == MAP_FAILED || page == MAP_FAILED || pipe(gate))
        fail("kernel");
    /* Those that only exist are there before the memory is, and have none of it. */
    for (unsigned i = 0; i < idle; i++) {
        if (forked() == 0) {
            close(gate[1]);
            for (;;)
                pause();
        }
    }
    char *memory = malloc(resident);
    if (!memory)
        fail("kernel: malloc");
    memset(memory, 1, resident);
    pid_t all[MOST];
    for (unsigned number = 0; number < workers; number++) {
        all[number] = forked();
        if (all[number] == 0) {
            char go;
            close(gate[1]);
            pin(number);
            /* They begin together, when the gate is closed. */
            if (read(gate[0], &go, 1) != 0)
                _exit(1);
            double began = now();
            if (!strcmp(operation, "segv"))
                faults(count);
            else if (!strcmp(operation, "nps"))
                switches(count);
            else
                processes(count);
            seconds[number] = now() - began;
            exit(0);
        }
    }
    close(gate[1]);
    double sum = 0;
    for (unsigned number = 0; number < workers; number++) {
        int status;
        if (waitpid(all[number], &status, 0) < 0 || status)
            fail("kernel: a worker");
        sum += seconds[number];
    }
    /* Idle ones end with this process. */
    printf("time: %.4f us of one %s, the mean of %u workers (%d)\n", sum / workers / (double)count * 1e6, operation, workers, memory[0]);
    return 0;
}
