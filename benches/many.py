#!/usr/bin/env python3
"""What looking at a crowded host costs: wall time, CPU time and peak memory of `ps`, `ps PID --vmas`, `doctor`, `placement
check` and `snapshot`.

usage: benches/many.py [--hugewise PATH] [--processes 3000] [--mappings 200000] [--runs 7] [--only NAME]

Starts sleeping processes and one with many mappings, all of them resident, then runs the commands in turn and prints a table in
Markdown. 200,000 mappings need root: vm.max_map_count is raised meanwhile and restored at the end. The processes end with this
one. Promise: under 100 MB each, and under 2 s for `doctor`, `snapshot` and `placement check`, with 3,000 processes and one with
200,000 mappings.
"""

import argparse
import ctypes
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MOST_MAPPINGS = "/proc/sys/vm/max_map_count"
PAGE = os.sysconf("SC_PAGESIZE")
PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 2, 0x20
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def forked(work):
    """A child that does `work`, reports that it is ready, sleeps, and ends with this process."""
    ready, write = os.pipe()
    child = os.fork()
    if child == 0:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            work()
            os.write(write, b"1")
            os.close(write)
            os.close(ready)
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(write)
    if os.read(ready, 1) != b"1":
        sys.exit("a process could not be prepared")
    os.close(ready)
    return child


def map_pages(count):
    """Pages whose neighbours have other permissions, so that each is a mapping of its own."""
    start = LIBC.mmap(None, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    ctypes.memset(start, 1, count * PAGE)
    for page in range(1, count, 2):
        if LIBC.mprotect(start + page * PAGE, PAGE, PROT_READ) != 0:
            os._exit(1)


def run(words):
    """Wall seconds, CPU seconds and peak KiB of one run."""
    began = time.monotonic()
    with open(os.devnull, "w") as nowhere:
        child = subprocess.Popen(words, stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)} ended with {child.returncode}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def commands(program, pid, folder):
    """Every command of the promise, by name."""
    yield "ps", [program, "ps"]
    yield "ps --why", [program, "ps", "--why"]
    yield "ps PID", [program, "ps", str(pid)]
    for form in ["text", "json", "csv", "markdown", "html"]:
        yield f"ps PID --vmas, {form}", [program, "ps", str(pid), "--vmas", "--format", form]
    yield "doctor", [program, "doctor", "--json"]
    yield "placement check (looks for a second)", [program, "placement", "check"]
    yield "snapshot", [program, "snapshot", "--yes", os.path.join(folder, "machine.tree")]


def measure(typed, pid):
    """The table."""
    print("| command | wall, median | most | CPU, median | peak memory |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, words in commands(typed.hugewise, pid, folder):
            if typed.only and typed.only not in name:
                continue
            wall, cpu, memory = zip(*(run(words) for _ in range(typed.runs)))
            cells = f"{statistics.median(wall):.2f} s | {max(wall):.2f} s | {statistics.median(cpu):.2f} s"
            print(f"| {name} | {cells} | {max(memory) * 1024 / 1e6:.0f} MB |", flush=True)


def interrupted(*_):
    """Ends the run once; what follows is cleaning up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit("interrupted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hugewise", default="target/release/hugewise")
    parser.add_argument("--processes", type=int, default=3000)
    parser.add_argument("--mappings", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", help="only commands whose name holds this text")
    typed = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    children = []
    with open(MOST_MAPPINGS) as file:
        before = file.read()
    try:
        if int(before) < typed.mappings + 1000:
            with open(MOST_MAPPINGS, "w") as file:
                file.write(str(typed.mappings + 1000))
        children.append(forked(lambda: map_pages(typed.mappings)))
        for _ in range(typed.processes):
            children.append(forked(lambda: None))
        there = sum(name.isdigit() for name in os.listdir("/proc"))
        runs = f"{typed.runs} runs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"
        print(f"{there} processes, one with {typed.mappings} mappings, {runs}\n")
        measure(typed, children[0])
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        with open(MOST_MAPPINGS, "w") as file:
            file.write(before)


main()
