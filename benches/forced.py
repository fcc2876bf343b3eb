#!/usr/bin/env python3
"""Throughput that `simulate scheduler` predicts for loads under forced placements, beside what those loads reach here.

    benches/forced.py target/release/hugewise [--rounds 7] [--seconds 3] [--write benches/results/forced-NAME.md]

Calibrated: the rate of one load alone on CPU 0 and on CPU 1, and the part of it that two loads lose while each has a CPU (`sibling_busy`: caches,
memory and host cores that they share). Predicted from these: everything else. All runs of a round, calibration included, are made in random order.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile

KINDS = {"computes": 0, "chases through 256K": 256 << 10, "chases through 64M": 64 << 20}
STEADY, BURSTS, SHORT = (0, 0), (8, 12), (1, 1)
# CPUs of the threads, what each does (ms of work, ms of sleep), the policy that it is simulated with
CASES = [
    ("both on CPU 0", [(0, STEADY), (0, STEADY)]),
    ("both on CPU 0, bursts", [(0, BURSTS), (0, BURSTS)]),
    ("a CPU each, bursts", [(0, BURSTS), (1, BURSTS)]),
    ("two on CPU 0, one on CPU 1", [(0, STEADY), (0, STEADY), (1, STEADY)]),
    ("all three on CPU 0", [(0, STEADY)] * 3),
    ("three anywhere", [("*", STEADY)] * 3),
    ("two on CPU 0, one on CPU 1, bursts", [(0, BURSTS), (0, BURSTS), (1, BURSTS)]),
    ("all three on CPU 0, short bursts", [(0, SHORT)] * 3),
    ("a steady one and two with bursts on CPU 0", [(0, STEADY), (0, BURSTS), (0, BURSTS)]),
    ("three anywhere, bursts", [("*", BURSTS)] * 3),
]


def measured(program, seconds, kind, loads, rate):
    """Steps a second of each load, in thousands."""
    words = []
    for cpu, (burst, sleep) in loads:
        words.append(f"{cpu}:{KINDS[kind]}:{max(1, round(burst / 1e3 * rate))}:{sleep * 1000}")
    done = subprocess.run([program, str(seconds), *words], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def scenario(loads, busy):
    lines = [f'policy = "{"linux-like" if loads[0][0] == "*" else "pinned"}"', "seconds = 120", "quantum_ms = 3", "[topology]", "nodes = 1", "sockets = 1",
             "cores_per_socket = 1", "threads_per_core = 2", "[costs]", f"sibling_busy = {max(0.0, busy):.4f}"]
    for place, (cpu, (burst, sleep)) in enumerate(loads):
        lines += ["[[vm]]", f'name = "load{place}"', "vcpus = 1", f"burst_ms = {burst or 8}", f"sleep_ms = {sleep}"]
        lines += [] if cpu == "*" else [f"cpus = [{cpu}]"]
    return "\n".join(lines) + "\n"


def predicted(binary, folder, loads, busy):
    """Work of each load, in CPUs at full rate."""
    file = os.path.join(folder, "scenario.toml")
    with open(file, "w") as text:
        text.write(scenario(loads, busy))
    done = subprocess.run([binary, "simulate", "scheduler", file, "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    data = json.loads(done.stdout)["data"]
    return [vm["work_s"] / data["seconds"] for vm in data["vms"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--write")
    asked = parser.parse_args()
    if len(os.sched_getaffinity(0)) != 2:
        sys.exit("the placements are for two CPUs: start it with taskset -c A,B on numbers 0 and 1, or on a machine with two")
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "forced")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forced.c")
        subprocess.run(["cc", "-O2", "-o", program, source, "-lm", "-pthread"], check=True)
        rate = {kind: measured(program, 1, kind, [(0, STEADY)], 1)[0] for kind in KINDS}
        runs = [("alone 0", [(0, STEADY)]), ("alone 1", [(1, STEADY)]), ("a CPU each", [(0, STEADY), (1, STEADY)]), *CASES]
        found = {}
        for _ in range(asked.rounds):
            order = [(kind, name, loads) for kind in KINDS for name, loads in runs]
            chance.shuffle(order)
            for kind, name, loads in order:
                found.setdefault((kind, name), []).append(sum(measured(program, asked.seconds, kind, loads, rate[kind])))
        rows, within = [], 0
        for kind in KINDS:
            alone = statistics.median(found[kind, "alone 0"] + found[kind, "alone 1"])
            busy = 1 - statistics.median(found[kind, "a CPU each"]) / (2 * alone)
            for name, loads in CASES:
                reached = sorted(total / alone for total in found[kind, name])
                middle = statistics.median(reached)
                asked_for = sum(predicted(asked.binary, folder, loads, busy))
                error = asked_for / middle - 1
                within += abs(error) <= 0.05
                rows.append(f"| {kind} ({100 * busy:.1f} %) | {name} | {middle:.3f} ({reached[0]:.3f} to {reached[-1]:.3f}) | {asked_for:.3f} | {100 * error:+.1f} % |")
        model = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        text = "\n".join([
            f"{os.cpu_count()} CPUs, {model}, Linux {platform.release()}. {asked.rounds} rounds of {asked.seconds:g} s a run. Throughput of all loads together, in CPUs at the rate of",
            "one load alone; median (least to most). In brackets: the calibrated part that two loads lose while each has a CPU.", "",
            "| load | placement | measured | predicted | error |", "|---|---|---|---|---|", *rows, "",
            f"{within} of {len(rows)} within 5 %."])
    print(text)
    if asked.write:
        with open(asked.write, "w") as file:
            file.write("# Loads under forced placements: predicted and measured\n\n" + text + "\n")


if __name__ == "__main__":
    main()
