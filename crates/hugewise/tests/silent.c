// A file system in user space that answers nothing about a file `hang`, below an overlay in a user and mount namespace of its own, and processes whose
// arguments name that file. Usage: silent FOLDER UID PROGRAM COUNT; FOLDER belongs to UID. Prints "up", or why not, and waits to be killed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

static void need(int good, const char *what) {
    if (!good) {
        printf("%s: %s\n", what, strerror(errno));
        fflush(stdout);
        exit(1);
    }
}

static void put(const char *file, const char *text) {
    int fd = open(file, O_WRONLY);
    need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), file);
    close(fd);
}

static void reply(int fd, unsigned long id, int error, void *out, size_t size) {
    struct fuse_out_header head = {.len = sizeof head + (error ? 0 : size), .error = error, .unique = id};
    struct iovec parts[2] = {{&head, sizeof head}, {out, error ? 0 : size}};
    (void)!writev(fd, parts, 2);
}

static void serve(int fd) {
    static char request[1 << 18];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(fd, request, sizeof request) > 0) {
        struct fuse_in_header *in = (void *)request;
        struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        struct fuse_attr_out attr = {.attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}};
        struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
        struct fuse_open_out opened = {0};
        switch (in->opcode) {
        case FUSE_INIT: reply(fd, in->unique, 0, &init, sizeof init); break;
        case FUSE_GETATTR: reply(fd, in->unique, 0, &attr, sizeof attr); break;
        case FUSE_STATFS: reply(fd, in->unique, 0, &statfs, sizeof statfs); break;
        case FUSE_OPENDIR: reply(fd, in->unique, 0, &opened, sizeof opened); break;
        case FUSE_RELEASEDIR: reply(fd, in->unique, 0, NULL, 0); break;
        case FUSE_LOOKUP:
            if (strcmp(request + sizeof *in, "hang")) reply(fd, in->unique, -ENOENT, NULL, 0);
            break;
        case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: break;
        default: reply(fd, in->unique, -ENOSYS, NULL, 0);
        }
    }
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int uid = atoi(argv[2]), count = atoi(argv[4]);
    char text[4096], data[4096];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    need(!chdir(argv[1]), argv[1]);
    // Most machines let all users open /dev/fuse, and this one need not.
    umask(0);
    need(!mknod("device", S_IFCHR | 0666, makedev(10, 229)), "a device");
    umask(022);
    need(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid), "a user");
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    need(!unshare(CLONE_NEWUSER | CLONE_NEWNS), "a user namespace");
    put("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %d 1", uid);
    put("/proc/self/uid_map", text);
    put("/proc/self/gid_map", text);
    mkdir("fuse", 0755), mkdir("low", 0755), mkdir("merged", 0755);
    int fd = open("device", O_RDWR | O_CLOEXEC);
    need(fd >= 0, "fuse");
    snprintf(text, sizeof text, "fd=%d,rootmode=40755,user_id=0,group_id=0", fd);
    need(!mount("silent", "fuse", "fuse", MS_NOSUID | MS_NODEV, text), "a mount of fuse");
    if (!fork()) serve(fd);
    close(fd);
    need(!mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV, "lowerdir=fuse:low"), "a mount of overlay");
    snprintf(data, sizeof data, "%s/merged/hang", argv[1]);
    for (int nth = 0; nth < count; nth++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        need(!chdir("/"), "/");
        execl(argv[3], "postgres", "-c", "while :; do kill -STOP $$; done", "postgres", "-D", data, NULL);
        _exit(1);
    }
    puts("up");
    fflush(stdout);
    for (;;) pause();
}
