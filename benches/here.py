#!/usr/bin/env python3
"""Latency that `simulate translation --machine here` predicts, beside what a second measurement shows.

    benches/here.py target/release/hugewise [--to 1G] [--budget 40] [--quick] [--write benches/results/here-NAME.md]

The machine is made of one run each of `measure tlb` and `measure latency`. Another run of `measure latency` is what it is held against, at working
sets above the second-level cache. The pattern of both is a chase through every line. The host's page size is the one that `measure tlb` found.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from shared import best_tlb

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    return int(text[:-1]) * UNITS[text[-1]]


def shown(size):
    for unit, bytes_ in reversed(UNITS.items()):
        if size >= bytes_:
            return f"{size / bytes_:g}{unit}"
    return f"{size}B"


def result(binary, words, file):
    done = subprocess.run([binary, *words, "--json", "--quiet", "--output", file], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    with open(file) as text:
        return json.load(text)


def data_cache(level):
    """Bytes of this CPU's cache, as sysfs has it."""
    base = "/sys/devices/system/cpu/cpu0/cache"
    for index in sorted(os.listdir(base)):
        read = lambda name: open(os.path.join(base, index, name)).read().strip()
        if index.startswith("index") and read("level") == str(level) and read("type") != "Instruction":
            return size(read("size"))
    return None


def working_sets(second, most):
    """Two an octave, from twice the second level on."""
    sizes, at = [], second * 2
    while at <= most:
        sizes += [at, at + at // 2]
        at *= 2
    return [size for size in sizes if size <= most]


def settings(verdict):
    """Modes and pages on this machine: base and 2 MiB pages on what the host backs them with."""
    if verdict in ("4K", "2M", "1G"):
        return ["--mode", "nested", "--guest-pages", "4K,2M", "--host-pages", verdict]
    return ["--mode", "native", "--pages", "4K,2M"]


def middle(case):
    return sum(case["cycles"][cause]["middle"] for cause in ("data", "tlb", "walks", "exits"))


def ends(case):
    return [sum(case["cycles"][cause][end] for cause in ("data", "tlb", "walks", "exits")) for end in ("low", "high")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--to", default="1G")
    parser.add_argument("--budget", default="40", help="seconds for each curve")
    parser.add_argument("--quick", action="store_true", help="measure tlb --quick")
    parser.add_argument("--write")
    arguments = parser.parse_args()
    second = data_cache(2) or 1 << 20
    sets = working_sets(second, size(arguments.to))
    latency = ["measure", "latency", "--pages", "base,thp", "--budget", f"{arguments.budget}s", "--sizes"]
    # Several for each near cache: contention may keep one from converging, and without its latency nothing beyond it is fitted.
    small = [16 << 10, 24 << 10, 32 << 10, second // 16, second // 8, second // 4, second // 2]
    with tempfile.TemporaryDirectory() as folder:
        file = lambda name: os.path.join(folder, name)
        quick = ["--quick"] if arguments.quick else []
        found = best_tlb(lambda file: result(arguments.binary, ["measure", "tlb", *quick], file), folder)
        found or sys.exit("measure tlb: no level of base pages was found: measure when the machine is quiet")
        with open(found) as text:
            tlb = json.load(text)
        known = result(arguments.binary, [*latency, ",".join(map(lambda one: f"{one}B", small + sets))], file("known.json"))
        held = result(arguments.binary, [*latency, ",".join(map(lambda one: f"{one}B", sets))], file("held.json"))
        words = ["simulate", "translation", "--machine", "here", "--measured", found, "--measured", file("known.json")]
        words += ["--pattern", "chase", "--accesses", "2000000", "--seed", "1", "--working-sets", ",".join(f"{one}B" for one in sets)]
        simulated = result(arguments.binary, words + settings(tlb["data"]["host_backing"]["verdict"]), file("simulated.json"))
    report(known, held, simulated, tlb, arguments)


def report(known, held, simulated, tlb, arguments):
    machine, data = held["machine"], simulated["data"]
    clock = [value for value in data["machine"]["values"] if value["what"] == "core-clock"]
    ghz = clock[0]["value"]["middle"] if clock else sys.exit("no core clock was measured: times cannot be predicted")
    kinds = {4096: "base", 2 << 20: "thp"}
    cases = {(kinds[case["setting"]["guest_page"]], case["working_set"]): case for case in data["cases"]}
    lines = [
        f"# `--machine here`, predicted and measured: {machine['cpu']}, kernel {machine['kernel']}",
        "",
        f"Command: `benches/here.py {' '.join(sys.argv[1:])}`, {held['started']}. Hypervisor {machine['hypervisor']}, host pages by timing: "
        f"{tlb['data']['host_backing']['verdict']}.",
        "",
        "| pages | working set | first run, ns | second run, ns | predicted from the first, ns | range | off the second |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    first = {(point["kind"], point["bytes"]): point["ns"]["median"] for point in known["data"]["points"] if point["ns"]}
    errors, repeats = [], []
    for point in held["data"]["points"]:
        case = cases.get((point["kind"], point["bytes"]))
        if case is None:
            continue
        predicted, (low, high) = middle(case) / ghz, (end / ghz for end in ends(case))
        if point["ns"] is None:
            measured, error = "not converged", ""
        else:
            ns = point["ns"]["median"]
            errors.append(predicted / ns - 1)
            measured, error = f"{ns:.1f}", f"{100 * errors[-1]:+.0f} %"
            repeats += [first[key] / ns - 1] if (key := (point["kind"], point["bytes"])) in first else []
        before = first.get((point["kind"], point["bytes"]))
        before = "not converged" if before is None else f"{before:.1f}"
        lines.append(
            f"| {point['kind']} | {shown(point['bytes'])} | {before} | {measured} | {predicted:.1f} | {low:.1f} to {high:.1f} | {error} |"
        )
    within = lambda errors: f"{sum(abs(error) <= 0.15 for error in errors)} of {len(errors)}"
    lines += ["", f"Within 15 %: {within(errors)} working sets. Of the first run itself {within(repeats)} points are within 15 % of the second.", "", "| value | | from |", "|---|---:|---|"]
    for value in data["machine"]["values"]:
        of = value["value"]
        number = f"{of['middle']:g}" if of["low"] == of["high"] else f"{of['low']:g} to {of['high']:g}"
        what = value["what"] if isinstance(value["what"], str) else " ".join(f"{k} {v}" for k, v in value["what"].items())
        source = os.path.basename(value.get("source", ""))
        lines.append(f"| {what} | {number} | {value['from']} {source} |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.write:
        with open(arguments.write, "w") as out:
            out.write(text)


if __name__ == "__main__":
    main()
