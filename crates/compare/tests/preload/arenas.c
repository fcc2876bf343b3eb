// Arenas smaller than a large page: threads map, use, move, cut and unmap them, and a child has its own copies of them.
#include "check.h"
enum { COUNT = 40 };
static void *work(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    char *arenas[COUNT];
    size_t lens[COUNT];
    for (int i = 0; i < COUNT; i++) {
        lens[i] = M / 4 + rand_r(&seed) % 192 * P;
        arenas[i] = region(lens[i]);
        CHECK(zero(arenas[i], 0, P) && zero(arenas[i], lens[i] - P, lens[i]));
        for (size_t at = 0; at < lens[i]; at += P)
            *(uint64_t *)(arenas[i] + at) = (uint64_t)number << 40 | (uint64_t)i << 32 | at;
        if (i % 5 == 4) {
            int old = rand_r(&seed) % i;
            CHECK(munmap(arenas[old], lens[old]) == 0);
            lens[old] = M / 4;
            arenas[old] = region(lens[old]);
            CHECK(zero(arenas[old], 0, lens[old]));
            for (size_t at = 0; at < lens[old]; at += P)
                *(uint64_t *)(arenas[old] + at) = (uint64_t)number << 40 | (uint64_t)old << 32 | at;
        }
        if (i % 7 == 6) {
            arenas[i] = mremap(arenas[i], lens[i], 2 * lens[i], MREMAP_MAYMOVE);
            CHECK(arenas[i] != MAP_FAILED && zero(arenas[i], lens[i], 2 * lens[i]));
            CHECK(munmap(arenas[i] + lens[i], lens[i]) == 0);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        for (size_t at = 0; at < lens[i]; at += P)
            CHECK(*(uint64_t *)(arenas[i] + at) == ((uint64_t)number << 40 | (uint64_t)i << 32 | at));
        CHECK(munmap(arenas[i], lens[i]) == 0);
    }
    return NULL;
}
int main(void) {
    char *before = region(M / 2);
    fill(before, M / 2);
    pid_t child = fork();
    CHECK(child >= 0);
    char *after = region(M / 2);
    CHECK(zero(after, 0, M / 2) && filled(before, 0, M / 2));
    memset(after, child ? 1 : 2, M / 2);
    CHECK(after[0] == (child ? 1 : 2) && after[M / 2 - 1] == after[0]);
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(filled(before, 0, M / 2) && after[0] == (child ? 1 : 2));
    if (!child)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
