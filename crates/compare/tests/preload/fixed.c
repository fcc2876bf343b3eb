// MAP_FIXED over a part of a region: a file, then nothing but address space.
#include "check.h"
int main(int argc, char **argv) {
    (void)argc;
    char *a = region(8 * M);
    fill(a, 8 * M);
    int fd = open(argv[0], O_RDONLY);
    char *b = mmap(a + 3 * M + P, P, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
    CHECK(b == a + 3 * M + P && memcmp(b, "\177ELF", 4) == 0);
    CHECK(filled(a, 0, 3 * M + P) && filled(a, 3 * M + 2 * P, 8 * M));
    char *c = mmap(a + 5 * M, M, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    CHECK(c == a + 5 * M && !readable(c));
    char *d = mmap(c, M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(d == c && zero(d, 0, M));
    CHECK(filled(a, 4 * M, 5 * M) && filled(a, 6 * M, 8 * M) && munmap(a, 8 * M) == 0);
    return 0;
}
