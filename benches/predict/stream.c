/* Reads and writes arrays from end to end, over and over: prefetching hides what translation costs. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t count = 32 << 20;
    double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to);
    if (!from || !to)
        return 1;
    for (size_t i = 0; i < count; i++)
        from[i] = (double)i;
    for (int lap = 0; lap < 60; lap++) {
        for (size_t i = 0; i < count; i++)
            to[i] = 3.0 * from[i] + 1.0;
        double *kept = from;
        from = to;
        to = kept;
    }
    printf("%f\n", from[count / 2]);
    return 0;
}
