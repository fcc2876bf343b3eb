// Threads map, use, cut and unmap at the same time, and never see each other's memory.
#include "check.h"
static void *work(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int round = 0; round < 150; round++) {
        size_t len = (2 + rand_r(&seed) % 3) * M + rand_r(&seed) % 16 * P;
        size_t cut = rand_r(&seed) % (len / P) * P;
        char *a = region(len);
        CHECK(*a == 0 && a[len - 1] == 0 && a[len / 2] == 0);
        for (size_t i = 0; i < len; i += 256 * 1024)
            *(uint64_t *)(a + i) = (uint64_t)number << 32 | i;
        if (cut)
            CHECK(munmap(a, cut) == 0);
        for (size_t i = 0; i < len; i += 256 * 1024)
            CHECK(i < cut || *(uint64_t *)(a + i) == ((uint64_t)number << 32 | i));
        CHECK(munmap(a + cut, len - cut) == 0);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
