// Guard pages inside of a region, before and after it is used.
#include "check.h"
int main(void) {
    char *a = region(6 * M);
    CHECK(mprotect(a, P, PROT_NONE) == 0);
    fill(a + P, 6 * M - P);
    CHECK(mprotect(a + 3 * M, P, PROT_NONE) == 0);
    CHECK(!readable(a) && !readable(a + 3 * M) && readable(a + 3 * M + P));
    CHECK(mprotect(a + 3 * M, P, PROT_READ | PROT_WRITE) == 0);
    CHECK(filled(a + P, 0, 6 * M - P));
    CHECK(mprotect(a + 4 * M, 2 * M, PROT_READ) == 0);
    CHECK(filled(a + P, 4 * M - P, 6 * M - P));
    CHECK(munmap(a, 6 * M) == 0);
    return 0;
}
