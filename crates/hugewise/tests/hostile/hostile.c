/* A process that is unpleasant to look at, in the way that the variable HOSTILE names; it waits until it is killed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many mappings as the kernel lets it have, up to 100,000: every other page has other rights. */
static void many_mappings(void) {
    size_t count = 100000, page = 4096;
    char *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    for (size_t nth = 0; nth < count; nth += 2)
        if (mprotect(memory + nth * page, page, PROT_READ)) break;
}

/* Children that end as soon as they are there, and are not waited for at once. */
static void vanish(void) {
    for (;;) {
        for (int nth = 0; nth < 20; nth++)
            if (fork() == 0) _exit(0);
        usleep(1000);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
}

int main(int argc, char **argv) {
    const char *mode = getenv("HOSTILE");
    (void)argc;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mode == NULL) mode = "";
    if (!strcmp(mode, "name")) {
        prctl(PR_SET_NAME, "\033[31m\nx\r\007=1+1");
        memset(argv[0], '\033', strlen(argv[0]));
    }
    if (!strcmp(mode, "mappings")) many_mappings();
    if (!strcmp(mode, "no-thp")) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (!strcmp(mode, "vanish")) vanish();
    if (!strcmp(mode, "zombie") && fork() == 0) _exit(0);
    if (!strcmp(mode, "stopped")) raise(SIGSTOP);
    for (;;) pause();
}
