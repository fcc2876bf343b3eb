// A child has its parent's memory, and both may write and unmap their own.
#include "check.h"
int main(void) {
    char *a = region(4 * M);
    fill(a, 4 * M);
    pid_t child = fork();
    if (child == 0) {
        CHECK(filled(a, 0, 4 * M));
        memset(a, 1, M);
        char *own = region(4 * M);
        fill(own, 4 * M);
        CHECK(munmap(a + P, P) == 0 && munmap(own, 4 * M) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(filled(a, 0, 4 * M) && munmap(a, 4 * M) == 0);
    return 0;
}
