#!/usr/bin/env python3
"""What `hugewise doctor` costs on a host with many processes: wall time, CPU time and peak memory of each run.

usage: benches/doctor.py [--hugewise PATH] [--processes 500] [--runs 15]

Starts sleeping processes, a tenth of them with 64 MiB of touched memory (which doctor looks into), runs doctor in turn, and
prints a table in Markdown. The processes end with this one. Promise: under 0.5 s and 100 MB with 500 processes.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

LARGE = (
    "import ctypes, sys; ctypes.CDLL(None).prctl(1, 9);"
    "x = bytearray(64 << 20); x[::4096] = bytes([1]) * len(x[::4096]); print(1, flush=True); sys.stdin.read()"
)


def plant(count):
    """Sleeping processes; every tenth has memory, up to 32 of them."""
    planted = []
    for number in range(count):
        large = number % 10 == 0 and number < 320
        words = [sys.executable, "-c", LARGE] if large else ["cat"]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if large:
            process.stdout.readline()
        planted.append(process)
    return planted


def run(program):
    """Wall seconds, CPU seconds and peak KiB of one run."""
    began = time.monotonic()
    with open(os.devnull, "w") as nowhere:
        child = subprocess.Popen([program, "doctor", "--json"], stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{program} doctor ended with {child.returncode}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hugewise", default="target/release/hugewise")
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=15)
    typed = parser.parse_args()
    planted = plant(typed.processes)
    try:
        there = sum(name.isdigit() for name in os.listdir("/proc"))
        runs = [run(typed.hugewise) for _ in range(typed.runs)]
    finally:
        for process in planted:
            process.kill()
        for process in planted:
            process.wait()
    wall, cpu, memory = zip(*runs)
    print(f"{there} processes, {typed.runs} runs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}\n")
    print("| | median | least | most |\n|---|---|---|---|")
    for name, values, unit in [("wall", wall, "s"), ("CPU", cpu, "s")]:
        print(f"| {name} | {statistics.median(values):.3f} {unit} | {min(values):.3f} {unit} | {max(values):.3f} {unit} |")
    mib = [kib / 1024 for kib in memory]
    print(f"| peak memory | {statistics.median(mib):.1f} MiB | {min(mib):.1f} MiB | {max(mib):.1f} MiB |")


main()
