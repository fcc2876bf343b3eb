// A program whose library maps memory before main, and that loads a copy of it later.
#include "check.h"
#include <dlfcn.h>
char *early(void);
int main(int argc, char **argv) {
    CHECK(argc == 2 && filled(early(), 0, 4 * M));
    void *copy = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(copy);
    char *(*its)(void) = (char *(*)(void))dlsym(copy, "early");
    CHECK(its && its() != early() && filled(its(), 0, 4 * M));
    CHECK(dlclose(copy) == 0);
    return 0;
}
