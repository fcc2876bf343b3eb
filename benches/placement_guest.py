#!/usr/bin/env python3
"""Are moves of each kind counted as forced, and is each planted mistake of pinning found? In an emulated machine of 2 nodes, with 2 cores of
2 threads each: CPU c is on core c / 2 and node c / 4.

usage: benches/placement_guest.py --kernel FILE [--hugewise PATH] [--turns 20] [--hops 0,1,2,4]

QEMU emulates the machine (TCG), so that neither KVM nor root is needed. A program goes round the CPUs of `--hops` so many times, and is recorded
by `hugewise placement record`, with and without `--light`. Then programs are started that are pinned wrongly, one for each mistake, and one that
is pinned well, and `hugewise placement check` looks at each. Prints forced and recorded moves by kind, and planted and found mistakes, as tables in
Markdown, and exits with 1 if they differ. Says `skipped: REASON` and exits with 0 where QEMU, a C compiler or the kernel is missing. FILE is a bzImage of Linux 5.4 or newer;
Debian's are in the package that `linux-image-cloud-amd64` depends on:

    apt-get download linux-image-VERSION-cloud-amd64 && dpkg -x linux-image-*.deb DIRECTORY     # DIRECTORY/boot/vmlinuz-*

Nothing is downloaded here. `--hugewise` defaults to target/release/hugewise; its libraries are taken along.
"""

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

INIT = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) { perror("sched_setaffinity"); exit(1); }
}

static void work(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    long long until = used.tv_sec * 1000000000LL + used.tv_nsec + 1000000;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec * 1000000000LL + used.tv_nsec < until);
}

/* hop TURNS CPU.. */
static int hop(int count, char **words) {
    for (int turn = 0; turn < atoi(words[1]); turn++)
        for (int at = 2; at < count; at++) { to(atoi(words[at])); work(); }
    return 0;
}

/* A thread of a name that spins on these CPUs. */
static void *spin(void *name) {
    if (name) prctl(PR_SET_NAME, name);
    for (;;) __asm__ volatile("pause");
    return 0;
}

static void thread(const char *name, int first, int last) {
    cpu_set_t set;
    pthread_attr_t with;
    pthread_t made;
    CPU_ZERO(&set);
    for (int cpu = first; cpu <= last; cpu++) CPU_SET(cpu, &set);
    pthread_attr_init(&with);
    pthread_attr_setaffinity_np(&with, sizeof set, &set);
    if (pthread_create(&made, &with, spin, (void *)name)) { perror("pthread_create"); exit(1); }
}

static void put(const char *file, const char *text) {
    int to = open(file, O_WRONLY);
    if (to < 0 || write(to, text, strlen(text)) < 0) perror(file);
    close(to);
}

/* CPUs 6 and 7 are isolated (isolcpus=6,7). */
static int plant(const char *mistake) {
    if (!strcmp(mistake, "shared-core")) { thread(0, 0, 0); thread(0, 1, 1); }
    else if (!strcmp(mistake, "shared-cpu")) { thread(0, 2, 2); thread(0, 2, 2); }
    else if (!strcmp(mistake, "first-thread-only")) { thread(0, 0, 7); to(3); }
    else if (!strcmp(mistake, "vcpus-on-siblings")) { thread("CPU 0/KVM", 0, 0); thread("CPU 1/KVM", 1, 1); }
    else if (!strcmp(mistake, "vcpus-on-nodes")) { thread("CPU 0/KVM", 0, 0); thread("CPU 1/KVM", 4, 4); }
    else if (!strcmp(mistake, "isolated-together")) { to(6); thread(0, 6, 7); thread(0, 6, 7); }
    else if (!strcmp(mistake, "remote-memory")) {
        unsigned long node = 2;
        size_t size = 128 << 20;
        if (syscall(SYS_set_mempolicy, 2, &node, 8)) perror("set_mempolicy");
        volatile char *memory = malloc(size);
        for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
        thread(0, 0, 0);
    } else if (!strcmp(mistake, "cpuset-cut")) {
        char pid[16];
        put("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
        mkdir("/sys/fs/cgroup/p", 0755);
        put("/sys/fs/cgroup/p/cpuset.cpus", "0-1");
        put("/sys/fs/cgroup/p/cgroup.subtree_control", "+cpuset");
        mkdir("/sys/fs/cgroup/p/c", 0755);
        put("/sys/fs/cgroup/p/c/cpuset.cpus", "0-3");
        snprintf(pid, sizeof pid, "%d", getpid());
        put("/sys/fs/cgroup/p/c/cgroup.procs", pid);
        thread(0, 0, 1);
    } else if (!strcmp(mistake, "well")) { thread(0, 0, 0); thread(0, 2, 2); }
    else return 1;
    for (;;) pause();
}

/* Starts a program that is pinned wrongly, looks, and ends it. */
static void check(const char *mistake) {
    char pid[16];
    pid_t planted = fork(), looks;
    if (planted == 0) { execl("/bin/plant", "/bin/plant", mistake, (char *)0); _exit(1); }
    sleep(3);
    snprintf(pid, sizeof pid, "%d", planted);
    if ((looks = fork()) == 0) { execl("/bin/hugewise", "hugewise", "placement", "check", pid, "--json", (char *)0); _exit(1); }
    waitpid(looks, 0, 0);
    kill(planted, SIGKILL);
    waitpid(planted, 0, 0);
}

/* The first process of the machine: it does what each line of /runs says, prints the results, and switches the machine off. */
int main(int count, char **words) {
    if (strstr(words[0], "hop")) return hop(count, words);
    if (strstr(words[0], "plant")) return plant(words[1]);
    mount("proc", "/proc", "proc", 0, 0);
    mount("sysfs", "/sys", "sysfs", 0, 0);
    mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
    mount("tmpfs", "/tmp", "tmpfs", 0, 0);
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, 0);
    setenv("PATH", "/bin", 1);
    setenv("HOME", "/tmp", 1);
    char line[4096];
    FILE *runs = fopen("/runs", "r");
    while (runs && fgets(line, sizeof line, runs)) {
        char *parts[64];
        int number = 0;
        for (char *part = strtok(line, " \n"); part; part = strtok(0, " \n")) parts[number++] = part;
        parts[number] = 0;
        printf("\nBEGIN %s\n", parts[0]);
        fflush(stdout);
        if (number == 1) check(parts[0]);
        else if (fork() == 0) {
            to(atoi(parts[1]));
            execv("/bin/hugewise", parts + 2);
            perror("/bin/hugewise");
            _exit(1);
        }
        while (wait(0) > 0);
        printf("\nEND\n");
        fflush(stdout);
    }
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
"""

# What `placement check` calls them; `well` is none.
PLANTED = [
    "shared-core", "shared-cpu", "first-thread-only", "vcpus-on-siblings", "vcpus-on-nodes", "remote-memory", "cpuset-cut", "isolated-together", "well",
]  # fmt: skip


def skipped(reason):
    print(f"skipped: {reason}")
    sys.exit(0)


def kind(one, other):
    """Of the emulated machine. Its cores share a cache as far as the CPU model says, so that both names of a move between them are right."""
    if one // 4 != other // 4:
        return "other node"
    return "other core" if one // 2 != other // 2 else "SMT sibling"


def forced(hops, turns):
    """Moves by kind of a program that begins on the first CPU."""
    path = hops * turns
    found = {"SMT sibling": 0, "other core": 0, "other node": 0}
    for one, other in zip(path, path[1:]):
        found[kind(one, other)] += one != other
    return found


def recorded(data):
    moves = data["total"]["migrations"]
    return {
        "SMT sibling": moves["smt_sibling"],
        "other core": moves["same_llc"] + moves["other_core"],
        "other node": moves["other_node"],
        "others": moves["other_socket"] + moves["unknown"],
    }


def entry(out, number, name, mode, data=b""):
    """One file of an archive as the kernel unpacks it (cpio newc)."""
    name = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))


def archive(path, files):
    """Files by path, with the folders that they are in."""
    folders = {"dev", "proc", "sys", "tmp"}
    for name in files:
        while "/" in name:
            name = os.path.dirname(name)
            folders.add(name)
    with open(path, "wb") as out:
        for number, name in enumerate(sorted(folders), 1):
            entry(out, number, name, stat.S_IFDIR | 0o755)
        for number, (name, data) in enumerate(files.items(), 1000):
            entry(out, number, name, stat.S_IFREG | 0o755, data)
        entry(out, 0, "TRAILER!!!", 0)


def program(hugewise, folder):
    """The program without debugging information, and its libraries by path."""
    small = os.path.join(folder, "hugewise")
    if subprocess.run(["strip", "-o", small, hugewise], check=False).returncode != 0:
        shutil.copy(hugewise, small)
    listed = subprocess.run(["ldd", small], capture_output=True, text=True, check=False).stdout
    files = {path.lstrip("/"): path for path in re.findall(r"(?:=> |^\s+)(/\S+)", listed, re.MULTILINE)}
    files["bin/hugewise"] = small
    return files


def boot(kernel, initramfs):
    """What the machine prints until it switches itself off."""
    node = lambda number: [
        "-object", f"memory-backend-ram,size=768M,id=m{number}",
        "-numa", f"node,nodeid={number},cpus={4 * number}-{4 * number + 3},memdev=m{number}",
    ]
    words = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "Nehalem", "-m", "1536M", "-smp", "8,sockets=2,cores=2,threads=2", *node(0), *node(1)]
    words += ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", initramfs]
    words += ["-append", "console=ttyS0 rdinit=/init quiet panic=-1 isolcpus=6,7"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600, check=False)
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel")
    parser.add_argument("--hugewise", default="target/release/hugewise")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--hops", default="0,1,2,4")
    asked = parser.parse_args()
    hops = [int(cpu) for cpu in asked.hops.split(",")]
    for name in ["qemu-system-x86_64", "cc"]:
        if not shutil.which(name):
            skipped(f"{name} is not installed")
    if not asked.kernel or not os.access(asked.kernel, os.R_OK):
        skipped("no kernel (--kernel FILE, a bzImage that can be read)")
    with tempfile.TemporaryDirectory() as folder:
        init = os.path.join(folder, "init")
        built = subprocess.run(["cc", "-O1", "-static", "-pthread", "-x", "c", "-", "-o", init], input=INIT, text=True, check=False)
        if built.returncode != 0:
            skipped("the C compiler makes no static programs")
        hop = ["--", "/bin/hop", str(asked.turns), *map(str, hops)]
        ways = {"records": [], "clocks": ["--light"]}
        runs = [[name, str(hops[0]), "hugewise", "placement", "record", "--json", "--quiet", *flags, *hop] for name, flags in ways.items()]
        paths = program(os.path.abspath(asked.hugewise), folder) | {"init": init, "bin/hop": init, "bin/plant": init}
        files = {name: open(path, "rb").read() for name, path in paths.items()}
        files["runs"] = "".join(" ".join(run) + "\n" for run in [*runs, *([mistake] for mistake in PLANTED)]).encode()
        initramfs = os.path.join(folder, "initramfs")
        archive(initramfs, files)
        printed = boot(asked.kernel, initramfs)
    texts = dict(re.findall(r"BEGIN (\S+)\s+(.*?)\s+END", printed, re.DOTALL))
    if set(texts) != set(ways) | set(PLANTED):
        sys.exit(f"the machine did not come to an end:\n{printed[-4000:]}")
    data = {name: json.JSONDecoder().raw_decode(text, text.index("{"))[0]["data"] for name, text in texts.items()}
    are_counted = print_moves(asked, ways, data, forced(hops, asked.turns) | {"others": 0})
    are_found = print_mistakes(data)
    sys.exit(0 if are_counted and are_found else 1)


def print_moves(asked, ways, data, expected):
    """Are all recorded as forced?"""
    found = {way: recorded(data[way]) for way in ways}
    print(f"{asked.turns} rounds of CPUs {asked.hops}, each for 1 ms of CPU time\n")
    print("| moves | forced | " + " | ".join(f"{way} ({data[way]['method']})" for way in ways) + " |")
    print("|---|---|" + "---|" * len(ways))
    for name, count in expected.items():
        print(f"| {name} | {count} | " + " | ".join(str(found[way][name]) for way in ways) + " |")
    for way in ways:
        cpus = ", ".join(f"CPU {cpu} {seconds * 1e3:.1f} ms" for cpu, seconds in data[way]["total"]["cpu_s"].items())
        print(f"\n{way}: {cpus}; {data[way]['missed']['lost_records']} records lost")
    return all(moves == expected for moves in found.values())


def print_mistakes(data):
    """Is each found, and none beside it that is not there?"""
    print("\n| planted | found | with |\n|---|---|---|")
    right = True
    for planted in PLANTED:
        mistakes = data[planted]["mistakes"]
        found = [mistake["mistake"] for mistake in mistakes]
        fixes = "; ".join(mistake["fixes"][0]["line"] for mistake in mistakes)
        print(f"| {planted} | {', '.join(found) or 'nothing'} | {fixes or '-'} |")
        right &= planted in found if planted != "well" else not found
    return right


if __name__ == "__main__":
    main()
