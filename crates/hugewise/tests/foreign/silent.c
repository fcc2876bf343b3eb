/* A file system in user space that never answers a read: silent DIRECTORY. It has one file, `postgresql.conf`. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static int device;

static void answer(struct fuse_in_header *asked, int error, const void *data, size_t length) {
    static char out[4096];
    struct fuse_out_header head = {sizeof head + length, error, asked->unique};
    memcpy(out, &head, sizeof head);
    if (length) memcpy(out + sizeof head, data, length);
    if (write(device, out, head.len) < 0) _exit(3);
}

static struct fuse_attr attributes(unsigned long node) {
    struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096, .size = 4096};
    attr.mode = node == 1 ? 0040755 : 0100644;
    return attr;
}

static void serve(struct fuse_in_header *asked) {
    const char *rest = (const char *)(asked + 1);
    switch (asked->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        answer(asked, 0, &out, sizeof out);
        puts("ready");
        fflush(stdout);
        break;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr_valid = 60, .attr = attributes(asked->nodeid)};
        answer(asked, 0, &out, sizeof out);
        break;
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out out = {.nodeid = 2, .entry_valid = 60, .attr_valid = 60, .attr = attributes(2)};
        if (strcmp(rest, "postgresql.conf")) answer(asked, -ENOENT, 0, 0);
        else answer(asked, 0, &out, sizeof out);
        break;
    }
    case FUSE_OPEN: {
        struct fuse_open_out out = {.fh = 1};
        answer(asked, 0, &out, sizeof out);
        break;
    }
    case FUSE_READ:
    case FUSE_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(asked, -ENOSYS, 0, 0);
    }
}

int main(int argc, char **argv) {
    static char asked[1 << 17];
    char options[128];
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (argc != 2 || device < 0) return 77;
    snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", device);
    if (mount("silent", argv[1], "fuse.silent", MS_NOSUID | MS_NODEV, options)) return 77;
    while (read(device, asked, sizeof asked) > 0) serve((struct fuse_in_header *)asked);
    return 0;
}
