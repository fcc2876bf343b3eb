// Reads 64 MiB in an order by chance, for some tenths of a second.
#include <stdlib.h>
#include <stdio.h>
int main(void) {
    enum { N = 1 << 24 };
    unsigned *a = malloc(4L * N), x = 1, sum = 0;
    for (int i = 0; i < N; i++) a[i] = i;
    for (int i = 0; i < 20000000; i++) { x = x * 1664525 + 1013904223; sum += a[(x >> 8) % N]; }
    return printf("%u\n", sum) < 0;
}
