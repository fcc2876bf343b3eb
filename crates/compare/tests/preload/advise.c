// Advice on parts of large pages: MADV_DONTNEED makes zeros of exactly what it names, hints succeed.
#include "check.h"
int main(void) {
    size_t len = 8 * M;
    char *a = region(len);
    fill(a, len);
    CHECK(madvise(a + P, 2 * P, MADV_DONTNEED) == 0);
    CHECK(madvise(a + 3 * M, 3 * M, MADV_DONTNEED) == 0);
    CHECK(filled(a, 0, P) && zero(a, P, 3 * P) && filled(a, 3 * P, 3 * M));
    CHECK(zero(a, 3 * M, 6 * M) && filled(a, 6 * M, len));
    int hints[] = {MADV_NORMAL, MADV_RANDOM, MADV_WILLNEED, MADV_FREE, MADV_DONTDUMP, MADV_COLD, MADV_PAGEOUT};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        CHECK(madvise(a + 7 * M + P, P, hints[i]) == 0);
    CHECK(filled(a, 6 * M, 7 * M + P));
    errno = 0;
    CHECK(madvise(a + 1, P, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(madvise(a, P, 12345) == -1 && errno == EINVAL);
    CHECK(munmap(a, len) == 0);
    return 0;
}
