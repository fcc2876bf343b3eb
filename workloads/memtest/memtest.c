/* Follows pointers through one malloc'ed block in random order: nearly every step misses the TLB on base pages. With a step in bytes it goes
 * down by that, and then through the lines below, until all were there: the order of VMware's program of that name.
 * An ordinary program: it knows nothing of page sizes. Usage: memtest MEBIBYTES MILLIONS_OF_STEPS [BYTES_OF_A_STEP] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINE 64

struct node {
    struct node *next;
    char rest[LINE - sizeof(struct node *)];
};

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
    size_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
    uint64_t steps = (argc > 2 ? strtoull(argv[2], NULL, 10) : 10) * 1000000;
    size_t count = (mebibytes << 20) / LINE;
    size_t apart = argc > 3 ? strtoull(argv[3], NULL, 10) / LINE : 0;
    struct node *nodes = malloc(count * LINE);
    if (!nodes || count < 2 || (apart && count % apart)) {
        fprintf(stderr, "memtest: no memory of %zu MiB, or no steps that fill it\n", mebibytes);
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        nodes[i].next = !apart ? &nodes[i] : i >= apart ? &nodes[i - apart] : &nodes[count - apart + (i + apart - 1) % apart];
    /* Sattolo's shuffle: one cycle through all nodes. */
    for (size_t i = apart ? 0 : count - 1; i > 0; i--) {
        size_t j = draw() % i;
        struct node *kept = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = kept;
    }
    struct timespec began, ended;
    struct node *at = nodes;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (uint64_t i = 0; i < steps; i++)
        at = at->next;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double ns = (double)(ended.tv_sec - began.tv_sec) * 1e9 + (double)(ended.tv_nsec - began.tv_nsec);
    printf("latency: %.2f ns per step (%p)\n", ns / (double)steps, (void *)at);
    free(nodes);
    return 0;
}
