// One region whose stretches are ordered by rules, printed as the kernel counts it: THP and hugetlb bytes of each quarter.
#include "check.h"
static unsigned long sum(char *from, char *to, const char *field) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[256];
    unsigned long start = 0, end = 0, kib, found = 0;
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) {
            start = first, end = last;
            continue;
        }
        if (start >= (uintptr_t)from && end <= (uintptr_t)to && strncmp(line, field, strlen(field)) == 0
            && sscanf(line + strlen(field), ": %lu kB", &kib) == 1)
            found += kib;
    }
    fclose(maps);
    return found;
}
int main(void) {
    char *a = region(32 * M);
    memset(a, 1, 32 * M);
    for (int i = 0; i < 4; i++) {
        char *from = a + i * 8 * M, *to = from + 8 * M;
        printf("%lu %lu\n", sum(from, to, "AnonHugePages"), sum(from, to, "Private_Hugetlb"));
    }
    return 0;
}
