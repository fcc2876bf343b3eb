/* Runs a command and counts what it and all its descendants fork and execute. It stops them at these events only.
 * Usage: tally COMMAND [ARGUMENT...] */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

static unsigned long forks, execs;

/* Lets a stopped process go on, as its stop was meant. */
static void go_on(pid_t pid, int status)
{
    int signal = WSTOPSIG(status), event = status >> 16;
    switch (event) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        forks++;
        break;
    case PTRACE_EVENT_EXEC:
        execs++;
        break;
    case PTRACE_EVENT_STOP:
        /* It was told to stop, and stays so; a new one stops with SIGTRAP. */
        if (signal != SIGTRAP) {
            ptrace(PTRACE_LISTEN, pid, 0, 0);
            return;
        }
        break;
    case 0:
        ptrace(PTRACE_CONT, pid, 0, signal);
        return;
    default:
        break;
    }
    ptrace(PTRACE_CONT, pid, 0, 0);
}

int main(int argc, char **argv)
{
    int gate[2], status, ended = 1;
    if (argc < 2 || pipe(gate)) {
        fprintf(stderr, "usage: tally COMMAND [ARGUMENT...]\n");
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        char go;
        close(gate[1]);
        if (read(gate[0], &go, 1) != 1)
            _exit(126);
        close(gate[0]);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    close(gate[0]);
    if (child < 0 || ptrace(PTRACE_SEIZE, child, 0, EVENTS) || write(gate[1], "g", 1) != 1) {
        perror("tally");
        return 1;
    }
    close(gate[1]);
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (pid > 0 && WIFSTOPPED(status))
            go_on(pid, status);
        else if (pid == child)
            ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    printf("forks: %lu\nexecs: %lu\n", forks, execs);
    return ended;
}
