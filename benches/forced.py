#!/usr/bin/env python3
"""Throughput that `simulate scheduler` predicts for loads under forced placements, beside what those loads reach here.

    benches/forced.py target/release/hugewise [--rounds 7] [--seconds 3] [--write benches/results/forced-NAME.md]

Calibrated for each kind of load: the rate of one alone on CPU 0 and on CPU 1; the part of it that two lose while each has a CPU (`sibling_busy`: caches,
memory and host cores that they share); and, from two that share CPU 0, how long a turn is and what of each turn is lost (`displaced_us`). Predicted from
these: everything else. All runs of a round, calibration included, are made in random order.
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
    """Steps a second of all loads, in thousands, and how often a second they were preempted."""
    words = []
    for cpu, (burst, sleep) in loads:
        words.append(f"{cpu}:{KINDS[kind]}:{max(1, round(burst / 1e3 * rate))}:{sleep * 1000}")
    done = subprocess.run([program, str(seconds), *words], check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return tuple(sum(float(line[column]) for line in lines) for column in (0, 1))


def scenario(loads, costs):
    lines = [f'policy = "{"linux-like" if loads[0][0] == "*" else "pinned"}"', "seconds = 120", f"quantum_ms = {costs['turn_ms']:.3f}", "[topology]", "nodes = 1", "sockets = 1",
             "cores_per_socket = 1", "threads_per_core = 2", "[costs]", f"sibling_busy = {costs['busy']:.4f}",
             f"sibling_us = {costs['displaced_us']:.1f}", f"displaced_us = {costs['displaced_us']:.1f}"]
    for place, (cpu, (burst, sleep)) in enumerate(loads):
        lines += ["[[vm]]", f'name = "load{place}"', "vcpus = 1", f"burst_ms = {(burst or 8) * costs['burst']:.4f}", f"sleep_ms = {sleep}", 'demand = "work"']
        lines += [] if cpu == "*" else [f"cpus = [{cpu}]"]
    return "\n".join(lines) + "\n"


def predicted(binary, folder, loads, costs):
    """Work of each load, in CPUs at full rate."""
    file = os.path.join(folder, "scenario.toml")
    with open(file, "w") as text:
        text.write(scenario(loads, costs))
    done = subprocess.run([binary, "simulate", "scheduler", file, "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    data = json.loads(done.stdout)["data"]
    return [vm["work_s"] / data["seconds"] for vm in data["vms"]]


def calibrated(found, kind, asked_rate):
    """What the simulation is told of a kind of load, and the rate of one alone."""
    middle = lambda name, column=0: statistics.median(run[column] for run in found[kind, name])
    alone = statistics.median([run[0] for name in ("alone 0", "alone 1") for run in found[kind, name]])
    turn_ms = 1e3 / max(1.0, middle("taking turns", 1))
    lost = max(0.0, 1 - middle("taking turns") / alone)
    # Bursts are numbers of steps, which were asked for before the rate was known as well.
    return {"busy": max(0.0, 1 - middle("a CPU each") / (2 * alone)), "turn_ms": turn_ms, "displaced_us": 1e3 * turn_ms * lost,
            "burst": asked_rate / alone}, alone


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
        runs = [("alone 0", [(0, STEADY)]), ("alone 1", [(1, STEADY)]), ("a CPU each", [(0, STEADY), (1, STEADY)]),
                ("taking turns", [(0, STEADY), (0, STEADY)]), *CASES]
        found = {}
        for _ in range(asked.rounds):
            order = [(kind, name, loads) for kind in KINDS for name, loads in runs]
            chance.shuffle(order)
            for kind, name, loads in order:
                found.setdefault((kind, name), []).append(measured(program, asked.seconds, kind, loads, rate[kind]))
        rows, within, beside = [], [], []
        for kind in KINDS:
            costs, alone = calibrated(found, kind, rate[kind])
            for name, loads in CASES:
                reached = sorted(total / alone for total, _ in found[kind, name])
                middle = statistics.median(reached)
                asked_for = sum(predicted(asked.binary, folder, loads, costs))
                error = asked_for / middle - 1
                (beside if loads[0][0] == "*" else within).append(abs(error) <= 0.05)
                rows.append(f"| {kind} ({100 * costs['busy']:.1f} %, {costs['displaced_us']:.0f} us of {costs['turn_ms']:.1f} ms) | {name} | {middle:.3f} ({reached[0]:.3f} to {reached[-1]:.3f}) | {asked_for:.3f} | {100 * error:+.1f} % |")
        model = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        text = "\n".join([
            f"{os.cpu_count()} CPUs, {model}, Linux {platform.release()}. {asked.rounds} rounds of {asked.seconds:g} s a run. Throughput of all loads together, in CPUs at the rate of",
            "one load alone; median (least to most). In brackets, calibrated: the part that two loads lose while each has a CPU, and the time that is lost of each turn.", "",
            "| load | placement | measured | predicted | error |", "|---|---|---|---|---|", *rows, "",
            f"Forced placements: {sum(within)} of {len(within)} within 5 %. Where the kernel may choose (`anywhere`): {sum(beside)} of {len(beside)}."])
    print(text)
    if asked.write:
        with open(asked.write, "w") as file:
            file.write("# Loads under forced placements: predicted and measured\n\n" + text + "\n")


if __name__ == "__main__":
    main()
