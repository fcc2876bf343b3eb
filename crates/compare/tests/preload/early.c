// A library that maps memory in its constructor, loaded with the program or while it runs.
#include "check.h"
static char *mine;
char *early(void) { return mine; }
__attribute__((constructor)) static void first(void) {
    mine = region(4 * M);
    fill(mine, 4 * M);
}
