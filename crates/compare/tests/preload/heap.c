// The heap by brk and sbrk, there and back.
#include "check.h"
int main(void) {
    char *start = sbrk(0);
    CHECK(sbrk(16 * M) == start && sbrk(0) == start + 16 * M);
    memset(start, 3, 16 * M);
    CHECK(brk(start + 5 * M) == 0 && sbrk(0) == start + 5 * M);
    CHECK(sbrk(-(intptr_t)M) == start + 5 * M && brk(start + 12 * M) == 0);
    CHECK(start[4 * M - 1] == 3 && zero(start, 5 * M, 12 * M));
    errno = 0;
    CHECK(brk((void *)-4096L) == -1 && errno == ENOMEM);
    return 0;
}
