// Writes a file of 8 MiB in pieces of 2 MiB, maps it where the second argument says (0: where the kernel puts it), advises it as the third one says
// (0: not at all), reads each page of it, prints its address, and waits for the end of its input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE (2UL << 20)
#define SIZE (4 * PIECE)

int main(int count, char **words) {
    if (count < 4) return 2;
    int file = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *piece = malloc(PIECE);
    if (file < 0 || !piece) return 3;
    memset(piece, 7, PIECE);
    for (unsigned long at = 0; at < SIZE; at += PIECE)
        if (write(file, piece, PIECE) != (ssize_t)PIECE) return 4;
    free(piece);
    void *place = (void *)strtoul(words[2], NULL, 0);
    int fixed = place ? MAP_FIXED_NOREPLACE : 0;
    volatile char *memory = mmap(place, SIZE, PROT_READ, MAP_SHARED | fixed, file, 0);
    if (memory == MAP_FAILED) return 5;
    int advice = atoi(words[3]);
    if (advice && madvise((void *)memory, SIZE, advice)) return 6;
    int sum = 0;
    for (unsigned long at = 0; at < SIZE; at += 4096) sum += memory[at];
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    while (getchar() != EOF) {}
    return sum == 0;
}
