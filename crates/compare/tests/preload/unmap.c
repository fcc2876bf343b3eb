// A region is unmapped in parts that do not end where large pages do: what is unmapped is gone, the rest is as it was.
#include "check.h"
int main(void) {
    size_t len = 9 * M + 3 * P;
    char *a = region(len);
    CHECK(zero(a, 0, len));
    fill(a, len);
    CHECK(munmap(a, 5 * P) == 0);
    CHECK(munmap(a + 3 * M, M + 7 * P) == 0);
    CHECK(munmap(a + len - P, P) == 0);
    CHECK(filled(a, 5 * P, 3 * M) && filled(a, 4 * M + 7 * P, len - P));
    CHECK(!readable(a + P) && !readable(a + 3 * M + P) && !readable(a + len - P));
    CHECK(munmap(a, len) == 0);
    CHECK(!readable(a + 2 * M));
    // An allocator that cuts its alignment out of an untouched region.
    char *b = region(16 * M);
    char *aligned = (char *)(((uintptr_t)b + P + 8 * M - 1) & ~(8 * M - 1));
    if (aligned != b)
        CHECK(munmap(b, aligned - b) == 0);
    CHECK(munmap(aligned + 5 * M, b + 16 * M - aligned - 5 * M) == 0);
    fill(aligned, 5 * M);
    CHECK(filled(aligned, 0, 5 * M) && munmap(aligned, 5 * M) == 0);
    return 0;
}
