// Regions that grow, shrink and move keep their content; what is new is zero.
#include "check.h"
int main(void) {
    char *a = region(4 * M);
    fill(a, 4 * M);
    char *b = mremap(a, 4 * M, 11 * M + P, MREMAP_MAYMOVE);
    CHECK(b != MAP_FAILED && filled(b, 0, 4 * M) && zero(b, 4 * M, 11 * M + P));
    fill(b, 11 * M + P);
    char *c = mremap(b, 11 * M + P, 3 * M, 0);
    CHECK(c == b && filled(c, 0, 3 * M) && !readable(c + 3 * M) && !readable(c + 8 * M));
    char *place = region(6 * M);
    char *d = mremap(c, 3 * M, 5 * M, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    CHECK(d == place && filled(d, 0, 3 * M) && zero(d, 3 * M, 5 * M));
    CHECK(!readable(c) && readable(place + 5 * M));
    CHECK(munmap(place, 6 * M) == 0);
    errno = 0;
    CHECK(mremap(NULL, 0, 0, 0) == MAP_FAILED && errno == EINVAL);
    return 0;
}
