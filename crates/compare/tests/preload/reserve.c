// Address space first, memory later: as the JVM (MAP_FIXED) and Go or V8 (mprotect) do it.
#include "check.h"
int main(void) {
    size_t len = 1024 * M;
    char *a = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(a != MAP_FAILED && !readable(a));
    CHECK(mprotect(a + 3 * M, 4 * M, PROT_READ | PROT_WRITE) == 0);
    fill(a + 3 * M, 4 * M);
    char *b = mmap(a + 16 * M, 4 * M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(b == a + 16 * M);
    fill(b, 4 * M);
    CHECK(filled(a + 3 * M, 0, 4 * M) && filled(b, 0, 4 * M) && !readable(a + 20 * M));
    CHECK(munmap(a, len) == 0);
    return 0;
}
