#!/usr/bin/env python3
"""How often `hugewise measure tlb` is exact, unknown or wrong, quiet and beside loads on another CPU.

    benches/tlb.py target/release/hugewise [--quick-runs 10] [--full-runs 3] [--alone-runs 20] [--write benches/results/tlb-NAME.md]

The truth is what the CPU table, or else CPUID, says of entries (the `known` part of the result). A level is `exact` if the one
number given is the truth, `range` if the truth lies inside, `unknown` if nothing is claimed, else `wrong`. lmbench's `tlb`
runs beside it where it is installed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter


# What keeps another CPU busy, by name.
LOADS = {
    # As compilers do: branches, allocations and walks over fresh memory.
    "compile": "import random\nwhile True:\n d={random.random():[n]*50 for n in range(200000)}\n sorted(d)\n",
    "spin": "while True: pass\n",
    # Writes to 512 MiB, a page apart, over and over.
    "memory": "memory=bytearray(512<<20)\nwhile True:\n for at in range(0,len(memory),4096): memory[at]=1\n",
}


def load(cpu, kind):
    """A process that keeps a CPU busy."""
    return subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", LOADS[kind]])


def measure(binary, quick, cpu):
    command = [binary, "measure", "tlb", "--json", "--quiet", "--cpu", str(cpu)] + (["--quick"] if quick else [])
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["data"], time.monotonic() - begun


def verdict(level, truth):
    entries = level["entries"]
    if entries is None:
        return "unknown"
    if not entries["low"] <= truth <= entries["high"]:
        return "wrong"
    return "exact" if entries["low"] == entries["high"] else "range"


def judge(data, tally, ways):
    # The table's word counts more than CPUID's: it comes last.
    said = sorted(data["known"], key=lambda known: "table" in known["source"])
    truths = {(known["kind"], known["level"]): known for known in said}
    for level in data["levels"]:
        place = (level["kind"], level["level"])
        if place not in truths:
            continue
        tally.setdefault(place, Counter())[verdict(level, truths[place]["entries"])] += 1
        ways.setdefault(place, Counter())[str(level["ways"])] += 1


def series(binary, runs, quick, cpu, busy, kind="compile"):
    other = load(busy, kind) if busy is not None else None
    tally, ways, times, backing = {}, {}, [], Counter()
    try:
        for _ in range(runs):
            data, seconds = measure(binary, quick, cpu)
            judge(data, tally, ways)
            times.append(seconds)
            backing[data["host_backing"]["verdict"]] += 1
    finally:
        if other:
            other.kill()
            other.wait()
    return tally, ways, times, backing


def rows(name, result):
    tally, ways, times, backing = result
    spent = f"{statistics.median(times):.1f} ({max(times):.1f})"
    for (kind, level), counts in sorted(tally.items()):
        told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        seen = ", ".join(f"{count} x {word}" for word, count in ways[(kind, level)].most_common())
        yield f"| {name} | {kind} {level} | {told} | {seen} | {spent} |"
    yield f"| {name} | host backing | {', '.join(f'{count} {word}' for word, count in backing.most_common())} | | {spent} |"


def lmbench():
    tool = shutil.which("tlb") or "/usr/lib/lmbench/bin/tlb"
    if not os.path.exists(tool):
        return "lmbench's `tlb`: skipped, it is not installed."
    try:
        done = subprocess.run([tool], capture_output=True, text=True, timeout=120)
        return f"lmbench's `tlb` says: `{(done.stdout + done.stderr).strip()}`"
    except subprocess.TimeoutExpired:
        return "lmbench's `tlb`: no answer in 120 s."


def model_name():
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--quick-runs", type=int, default=10)
    parser.add_argument("--full-runs", type=int, default=3, help="default runs beside each kind of load")
    parser.add_argument("--alone-runs", type=int, default=0, help="default runs without added load")
    parser.add_argument("--cpu", type=int, help="measure on this CPU; another one is kept busy")
    parser.add_argument("--write")
    typed = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    cpu = cpus[0] if typed.cpu is None else typed.cpu
    busy = next((other for other in cpus if other != cpu), None)
    text = [
        "# TLB geometry from timing: how often it is right",
        "",
        f"{model_name()}, {len(cpus)} CPUs, load average {os.getloadavg()[0]:.1f} before the first run. Made by `benches/tlb.py`.",
        "",
        "| runs | level | entries | ways | seconds, median (most) |",
        "|---|---|---|---|---|",
    ]
    if typed.quick_runs:
        text += rows(f"{typed.quick_runs} x `--quick`, no load added", series(typed.binary, typed.quick_runs, True, cpu, None))
    if typed.quick_runs and busy is not None:
        text += rows(f"{typed.quick_runs} x `--quick`, other CPU busy", series(typed.binary, typed.quick_runs, True, cpu, busy))
    if typed.alone_runs:
        text += rows(f"{typed.alone_runs} x default, no load added", series(typed.binary, typed.alone_runs, False, cpu, None))
    if typed.full_runs and busy is not None:
        for kind in LOADS:
            name = f"{typed.full_runs} x default, other CPU busy ({kind})"
            text += rows(name, series(typed.binary, typed.full_runs, False, cpu, busy, kind))
    text += ["", lmbench(), ""]
    print("\n".join(text))
    if typed.write:
        with open(typed.write, "w") as out:
            out.write("\n".join(text))


if __name__ == "__main__":
    main()
