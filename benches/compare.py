#!/usr/bin/env python3
"""What `hugewise compare` adds to each run, beside hyperfine, which adds little: both start /bin/true as often, by turns.

Usage: compare.py [--turns 41] [--blocks 20,400] [--program /bin/true] [--out FILE]

A block of `compare --arms base,system` is three runs (the reference is run twice), so hyperfine makes three times as many.
Each turn takes both tools with few and with many runs, in an order that changes; the slope between the two is the cost of a
run (fork, exec, the program itself, waiting, and what the tool does with the run until its result is out), the rest is the tool's
own start. hyperfine is taken from PATH, hugewise from PATH or from target/release.
"""
import argparse, os, platform, shutil, statistics, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from shared import cost, hugewise_path, tell

RUNS_OF_A_BLOCK = 3


def tools(program, folder):
    """By name: the command that makes so many runs."""
    hugewise, hyperfine = hugewise_path(), shutil.which("hyperfine")
    if not hugewise:
        sys.exit("hugewise is neither on PATH nor in target/release (cargo build --release)")
    exported = os.path.join(folder, "hyperfine.json")
    words = [hugewise, "compare", "--arms", "base,system", "--warm-up", "0", "--quiet", "--json", "--runs"]
    found = {"hugewise compare": lambda runs: [*words, str(runs // RUNS_OF_A_BLOCK), "--", program]}
    if hyperfine:
        others = [hyperfine, "--shell=none", "--warmup", "0", "--style", "none", "--export-json", exported, "--runs"]
        found["hyperfine --shell=none"] = lambda runs: [*others, str(runs), program]
    else:
        print("skipped: hyperfine: not on PATH", file=sys.stderr)
    return found


def turn(commands, few, many, backwards):
    """By tool: (wall, CPU) seconds of a run, and of all that is not a run."""
    cells = [(name, runs) for runs in (few, many) for name in commands]
    costs = {cell: cost(commands[cell[0]](cell[1])) for cell in (reversed(cells) if backwards else cells)}
    told = {}
    for name in commands:
        pairs = list(zip(costs[name, few], costs[name, many]))
        slopes = [(most - least) / (many - few) for least, most in pairs]
        told[name] = slopes, [least - few * slope for (least, _), slope in zip(pairs, slopes)]
    return told


def table(turns):
    yield "| tool | a run, wall us: median | least | most | a run, CPU us: median | least | start, wall ms: median |"
    yield "|---|---|---|---|---|---|---|"
    for name in turns[0]:
        wall, cpu = zip(*[slopes for slopes, _ in (told[name] for told in turns)])
        start = [fixed[0] for _, fixed in (told[name] for told in turns)]
        us = lambda seconds: f"{seconds * 1e6:.0f}"
        yield (
            f"| {name} | {us(statistics.median(wall))} | {us(min(wall))} | {us(max(wall))} "
            f"| {us(statistics.median(cpu))} | {us(min(cpu))} | {statistics.median(start) * 1e3:.1f} |"
        )


def difference(turns):
    ours, theirs = turns[0]
    for number, what in enumerate(["wall", "CPU"]):
        more = [(told[ours][0][number] - told[theirs][0][number]) * 1e6 for told in turns]
        less = sum(one <= 0 for one in more)
        yield (
            f"A run costs {ours} {statistics.median(more):+.0f} us of {what} time against {theirs} in the same turn (median; "
            f"{min(more):+.0f} to {max(more):+.0f}); no more in {less} of {len(more)} turns."
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=41)
    parser.add_argument("--blocks", default="20,400")
    parser.add_argument("--program", default="/bin/true")
    parser.add_argument("--out")
    asked = parser.parse_args()
    few, many = (RUNS_OF_A_BLOCK * int(blocks) for blocks in asked.blocks.split(","))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        commands = tools(asked.program, folder)
        turns = [turn(commands, few, many, number % 2) for number in range(asked.turns)]
    lines = [f"{asked.turns} turns of {few} and {many} runs of {asked.program}, Linux {platform.release()}, "]
    lines[0] += f"{os.cpu_count()} CPUs, load average {load:.1f} before."
    lines += ["", *table(turns), ""]
    lines += difference(turns) if len(commands) > 1 else []
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
