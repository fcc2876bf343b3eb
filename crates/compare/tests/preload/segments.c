// A shared segment, seen by parent and child.
#include "check.h"
#include <sys/ipc.h>
#include <sys/shm.h>
int main(void) {
    int id = shmget(IPC_PRIVATE, 5 * M, IPC_CREAT | 0600);
    CHECK(id != -1);
    char *a = shmat(id, NULL, 0);
    CHECK(a != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
    CHECK(zero(a, 0, 5 * M));
    if (fork() == 0) {
        fill(a, 5 * M);
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0 && filled(a, 0, 5 * M) && shmdt(a) == 0);
    errno = 0;
    CHECK(shmat(-1, NULL, 0) == (void *)-1 && errno == EINVAL);
    return 0;
}
