// Runs a program in a session keyring with a key `hugewise-secret` in it, exempt from the kernel's choice of what to end for want of memory.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    // linux/keyctl.h: KEYCTL_JOIN_SESSION_KEYRING, KEY_SPEC_SESSION_KEYRING.
    syscall(SYS_keyctl, 1, 0);
    syscall(SYS_add_key, "user", "hugewise-secret", "value", 5, -3);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd >= 0 && write(fd, "-500", 4) == 4) close(fd);
    if (argc > 1) execv(argv[1], argv + 1);
    return 127;
}
