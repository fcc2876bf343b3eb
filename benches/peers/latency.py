#!/usr/bin/env python3
"""Holds `hugewise measure latency` against other pointer chases, interleaved in one run.

Usage: latency.py [--repeats 7] [--sizes 32K,256K,64M,1G] [--kinds base,thp] [--cpu N] [--samples 4] [--out FILE]

Peers, each used if it is found on PATH and named as skipped if not:
  multichase  (google/multichase), stride 64, -T the whole size, so that it visits the same lines
  cc          builds chase.c of this folder, our own independent chase
multichase tells the best of its samples of half a second; so each tool gives the best of as many such samples in a repeat.
hugewise itself is taken from PATH or from target/release.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

from shared import hugewise_path

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    return int(text[:-1]) * UNITS[text[-1]]


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def best(samples):
    """The least median, as multichase tells it, so that all give the same kind of number; what was quiet in any of them."""
    samples = list(samples)
    quiets, cycles = ([one[n] for one in samples if one[n]] for n in (1, 2))
    return min(one[0] for one in samples), min(quiets, default=None), min(cycles, default=None)


def hugewise(program, kind, text, count):
    return best(hugewise_sample(program, kind, text) for _ in range(count))


def hugewise_sample(program, kind, text):
    out = run([program, "measure", "latency", "--pages", kind, "--sizes", text, "--budget", "500ms", "--json", "--quiet"])
    point = json.loads(out)["data"]["points"][0]
    quiet = point["quiet"] or {}
    return point["ns"]["median"], quiet.get("ns"), quiet.get("cycles")


def multichase(program, kind, text, count):
    huge = ["-H"] if kind == "thp" else []
    out = run([program, "-m", str(size(text)), "-s", "64", "-T", str(size(text)), "-n", str(count), *huge])
    return float(out.split()[-1]), None, None


def chase(program, kind, text, count):
    return best(chase_sample(program, kind, text) for _ in range(count))


def chase_sample(program, kind, text):
    median, quiet = run([program, str(size(text)), kind, "0.5"]).split()
    return float(median), float(quiet), None


def programs(folder):
    found = {"hugewise": (hugewise, hugewise_path()), "multichase": (multichase, shutil.which("multichase"))}
    compiler = shutil.which("cc")
    if compiler:
        binary = os.path.join(folder, "chase")
        subprocess.run([compiler, "-O2", "-o", binary, os.path.join(HERE, "chase.c")], check=True)
        found["independent"] = (chase, binary)
    else:
        print("skipped: independent: cc is not on PATH")
    for name, (_, path) in found.items():
        if not path:
            print(f"skipped: {name}: not on PATH")
    return {name: entry for name, entry in found.items() if entry[1]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sizes", default="32K,256K,64M,1G")
    parser.add_argument("--kinds", default="base,thp")
    parser.add_argument("--cpu", type=int, help="the CPU that all tools run on")
    parser.add_argument("--samples", type=int, default=4, help="samples of half a second whose best counts, in each repeat")
    parser.add_argument("--out")
    asked = parser.parse_args()
    if asked.cpu is not None:
        os.sched_setaffinity(0, {asked.cpu})
    results, quiets, cycles, seconds = {}, {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        tools = programs(folder)
        if "hugewise" not in tools:
            sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
        for repeat in range(asked.repeats):
            for text in asked.sizes.split(","):
                for kind in asked.kinds.split(","):
                    # Another order each time, so that no tool is always first.
                    for name in sorted(tools, key=lambda name: hash((name, repeat, text, kind))):
                        function, path = tools[name]
                        begun = time.monotonic()
                        ns, quiet, core = function(path, kind, text, asked.samples)
                        seconds[name] = seconds.get(name, 0) + time.monotonic() - begun
                        results.setdefault((text, kind, name), []).append(ns)
                        if quiet:
                            quiets.setdefault((text, kind, name), []).append(quiet)
                        if core:
                            cycles.setdefault((text, kind), []).append(core)
    # Medians and least are over repeats. A neighbour's bursts last longer than a repeat: where it moves medians, least tells more.
    # Quiet: the 2 % quantile of short blocks, which a neighbour in the core's caches does not reach; the least of all repeats
    # is compared, because in some of them it was never quiet.
    lines = [
        "| size | pages | tool | median ns | spread | hugewise / tool | least ns | hugewise / tool | quiet ns | hugewise / tool | quiet cycles |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (text, kind, name), values in results.items():
        ours = statistics.median(results[(text, kind, "hugewise")])
        median = statistics.median(values)
        least, own_least = min(values), min(results[(text, kind, "hugewise")])
        spread = (max(values) - least) / least
        core = cycles.get((text, kind))
        shown = f"{min(core):.2f}" if core and name == "hugewise" else ""
        quiet, own = (min(quiets.get((text, kind, tool), [0])) for tool in (name, "hugewise"))
        quietly = f"{quiet:.3f} | {own / quiet:.3f}" if quiet and text[-1] == "K" else " | "
        lines.append(f"| {text} | {kind} | {name} | {median:.2f} | {spread:.0%} | {ours / median:.3f} | {least:.3f} | {own_least / least:.3f} | {quietly} | {shown} |")
    lines.append("")
    lines.append("seconds in all: " + ", ".join(f"{name} {total:.0f}" for name, total in seconds.items()))
    print("\n".join(lines))
    if asked.out:
        with open(asked.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
