#!/usr/bin/env python3
"""Do the intervals of `hugewise measure latency` hold under repetition of the whole run?

Usage: repeat.py [--runs 20] [--sizes 256K,64M,256M] [--kinds base,thp] [--out FILE]

Runs the same measurement again and again, each time with another seed, and counts how many of the 95 % intervals hold the
median over all runs: 95 % would if nothing but what an interval can know differed between runs. Points without a number
(not converged) are counted apart: their bound is to hold that median, too.
"""
import argparse, os, statistics, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from converged import points, run
from shared import hugewise_path, tell
import json


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sizes", default="256K,64M,256M")
    parser.add_argument("--kinds", default="base,thp")
    parser.add_argument("--out")
    asked = parser.parse_args()
    program = hugewise_path() or sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
    command = [program, "measure", "latency", "--sizes", asked.sizes, "--pages", asked.kinds, "--json", "--quiet", "--no-pool"]
    runs = [points(json.loads(run([*command, "--seed", str(seed)]))) for seed in range(1, asked.runs + 1)]
    lines, held, all = ["| pages | size | median of all runs | spread of runs | half interval, median | intervals that hold it | bounds that hold it |", "|---|---|---|---|---|---|---|"], 0, 0
    for key in runs[0]:
        medians = [one[key][0] for one in runs if one[key][0]]
        if not medians:
            lines.append(f"| {key[0]} | {key[1] >> 10}K | never converged | | | | |")
            continue
        middle = statistics.median(medians)
        spans = [one[key][2] for one in runs if one[key][0]]
        hold = sum(span["low"] <= middle <= span["high"] for span in spans)
        bounds = [one[key][1] for one in runs if not one[key][0] and one[key][1]]
        inside = sum((bound["low"] or 0) <= middle <= (bound["high"] or float("inf")) for bound in bounds)
        held, all = held + hold, all + len(spans)
        half = statistics.median((span["high"] - span["low"]) / 2 / span["median"] for span in spans)
        spread = statistics.pstdev(medians) / middle
        lines.append(f"| {key[0]} | {key[1] >> 10}K | {middle:.3f} ns | {spread:.1%} | {half:.1%} | {hold} of {len(spans)} | {inside} of {len(bounds)} |")
    lines += ["", f"{held} of {all} intervals ({held / max(all, 1):.0%}) hold the median of all {asked.runs} runs"]
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
