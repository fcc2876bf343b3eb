// Errors are the kernel's, and a success leaves errno alone.
#include "check.h"
int main(void) {
    errno = 77;
    char *a = region(64 * M);
    CHECK(madvise(a, P, MADV_DONTNEED) == 0 && munmap(a, 64 * M) == 0 && errno == 77);
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, P, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    CHECK(mmap(NULL, SIZE_MAX - P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(mmap(NULL, 1UL << 46, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(munmap((void *)1, P) == -1 && errno == EINVAL);
    CHECK(mprotect((void *)P, P, PROT_READ) == -1 && errno == ENOMEM);
    return 0;
}
