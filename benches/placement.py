#!/usr/bin/env python3
"""What recording context switches costs a program that does little else: a byte to and fro through two pipes.

usage: benches/placement.py [--hugewise PATH] [--rounds 7] [--turns 200000]

Runs the same ping-pong alone, under `hugewise placement record` by records and by `--light`, and (as root,
where perf is installed) under `perf sched record`, in rounds of changing order, both processes on one CPU. Prints a table in Markdown: CPU time of both processes
for each switch, what is added to that of the run alone in the same round, bytes on disk, and switches that the result holds. CPU
time, as wall time on a busy machine is mostly that of others. Needs a C compiler.
"""

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import tempfile

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static double used(int whose) {
    struct rusage used;
    getrusage(whose, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}
int main(int count, char **words) {
    long turns = atol(words[1]);
    int to[2], fro[2];
    char byte = 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    if (count != 3 || pipe(to) || pipe(fro)) return 1;
    if (fork() == 0) {
        close(to[1]);
        while (read(to[0], &byte, 1) == 1 && write(fro[1], &byte, 1) == 1);
        return 0;
    }
    double before = used(RUSAGE_SELF);
    for (long turn = 0; turn < turns; turn++)
        if (write(to[1], &byte, 1) != 1 || read(fro[0], &byte, 1) != 1) return 1;
    double own = used(RUSAGE_SELF) - before;
    close(to[1]);
    wait(0);
    FILE *file = fopen(words[2], "w");
    fprintf(file, "%f\n", (own + used(RUSAGE_CHILDREN)) / turns / 2);
    return fclose(file);
}
"""


FLAGS = ["", "--light"]


def ways(hugewise, folder):
    """Names and the words before the program."""
    result, data = os.path.join(folder, "result.json"), os.path.join(folder, "perf.data")
    found = {"alone": []}
    found |= {
        f"hugewise placement record {flags}".strip(): [hugewise, "placement", "record", *flags.split(), "--quiet", "--output", result, "--"]
        for flags in FLAGS
    }
    if shutil.which("perf") and os.geteuid() == 0:
        found["perf sched record"] = ["perf", "sched", "record", "-o", data, "--"]
    return found


def run(words, program, turns, folder):
    """Nanoseconds for each switch, the size of the result, and the switches and lost records that it holds."""
    time, kept = os.path.join(folder, "time"), [os.path.join(folder, name) for name in ("result.json", "perf.data")]
    for file in kept:
        if os.path.exists(file):
            os.remove(file)
    subprocess.run([*words, program, str(turns), time], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = sum(os.path.getsize(file) for file in kept if os.path.exists(file))
    switches, lost, method = None, None, None
    if os.path.exists(kept[0]):
        with open(kept[0], encoding="utf-8") as file:
            recording = json.load(file)["data"]
        switches, lost, method = recording["total"]["runs"], recording["missed"]["lost_records"], recording["method"]
    with open(time, encoding="utf-8") as file:
        return float(file.read()), size, switches, lost, method


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hugewise", default="target/release/hugewise")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turns", type=int, default=200_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "pingpong")
        subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
        of = ways(os.path.abspath(asked.hugewise), folder)
        found = {name: [] for name in of}
        for turn in range(asked.rounds):
            order = list(of)
            random.Random(turn).shuffle(order)
            for name in order:
                found[name].append(run(of[name], program, asked.turns, folder))
    print(f"Linux {platform.release()}, {os.cpu_count()} CPUs, {asked.rounds} rounds of {2 * asked.turns:,} switches\n")
    print("| recorder | method | CPU ns a switch, median (least to most) | added, median (least to most) | bytes kept | switches in it | lost |")
    print("|---|---|---|---|---|---|---|")
    for name, runs in found.items():
        times = [time for time, *_ in runs]
        added = [time - alone for time, (alone, *_) in zip(times, found["alone"])]
        spread = lambda values: f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
        size, switches, lost, method = runs[-1][1:]
        held = "-" if switches is None else f"{switches:,}"
        gone = "-" if lost is None else str(sum(run[3] or 0 for run in runs))
        cells = [name, method or "-", spread(times), spread(added), f"{size:,}", held, gone]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
