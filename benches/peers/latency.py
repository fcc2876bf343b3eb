#!/usr/bin/env python3
"""Holds `hugewise measure latency` against other pointer chases, interleaved in one run.

Usage: latency.py [--repeats 7] [--sizes 32K,256K,64M,1G] [--kinds base,thp] [--cpu N] [--samples 4] [--when-quiet MINUTES] [--out FILE]

Peers, each used if it is found on PATH and named as skipped if not:
  multichase  (google/multichase), stride 64, -T the whole size, so that it visits the same lines
  cc          builds chase.c of this folder, our own independent chase; it takes part twice, as a control
multichase tells the best of its samples of half a second; so each tool gives the best of as many such samples in a repeat.
A sample of multichase is a mean, though, those of the others are medians, and where somebody disturbs, a mean is longer. So the independent
chase takes part once more with its means: what multichase has against those is multichase's own, the rest is the statistic.
hugewise itself is taken from PATH or from target/release.

--when-quiet, for a VM whose neighbours share its core: what a tool tells counts only if the independent chase found L1 quiet
just before and just after; that judges all tools alike, and none by its own figure. It says how many turns were asked again.
"""
import argparse, functools, json, os, shutil, statistics, subprocess, sys, tempfile, time

from shared import hugewise_path, tell

HERE = os.path.dirname(os.path.abspath(__file__))
MEANS = "independent, means"
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


def chase(program, kind, text, count, by_means=False):
    samples = [chase_sample(program, kind, text) for _ in range(count)]
    return best((mean if by_means else median, quiet, None) for median, quiet, mean in samples)


def chase_sample(program, kind, text, seconds="0.5"):
    """Median, quiet step and mean."""
    return tuple(float(number) for number in run([program, str(size(text)), kind, seconds]).split())


def is_quiet(tools):
    """Does a ring that fills L1 take, in half of its blocks, about what it takes in the shortest ones? Alone it takes 1.045 times that."""
    median, quiet, _ = chase_sample(tools["independent"][1], "base", "32K", "0.1")
    return median <= 1.07 * quiet


class Turns:
    """Asks tools by turns; what somebody disturbed is asked again while there is time."""

    def __init__(self, tools, asked):
        self.tools, self.asked = tools, asked
        self.until = time.monotonic() + 60 * (asked.when_quiet or 0)
        self.given_up = 0

    def ask(self, name, text, kind):
        """What a tool tells and the seconds it took; None when out of time."""
        function, path = self.tools[name]
        while True:
            quiet = not self.asked.when_quiet or is_quiet(self.tools)
            begun = time.monotonic()
            told = function(path, kind, text, self.asked.samples) if quiet else None
            took = time.monotonic() - begun
            if quiet and (not self.asked.when_quiet or is_quiet(self.tools)):
                return told, took
            self.given_up += quiet
            if time.monotonic() > self.until:
                return None
            time.sleep(0.1)

    def all(self):
        """All turns: size, kind, tool, and what it tells."""
        for repeat in range(self.asked.repeats):
            for text in self.asked.sizes.split(","):
                for kind in self.asked.kinds.split(","):
                    # Another order each time, so that no tool is always first.
                    for name in sorted(self.tools, key=lambda name: hash((name, repeat, text, kind))):
                        if (told := self.ask(name, text, kind)) is None:
                            return
                        yield text, kind, name, *told


def programs(folder):
    found = {"hugewise": (hugewise, hugewise_path()), "multichase": (multichase, shutil.which("multichase"))}
    compiler = shutil.which("cc")
    if compiler:
        binary = os.path.join(folder, "chase")
        subprocess.run([compiler, "-O2", "-o", binary, os.path.join(HERE, "chase.c")], check=True)
        # Twice: two tools that are the same differ by what this machine makes of any two.
        found["independent"] = found["independent again"] = (chase, binary)
        found[MEANS] = (functools.partial(chase, by_means=True), binary)
    else:
        print("skipped: independent: cc is not on PATH")
    for name, (_, path) in found.items():
        if not path:
            print(f"skipped: {name}: not on PATH")
    return {name: entry for name, entry in found.items() if entry[1]}


def against_means(results):
    """Means against means, for the one tool that tells none but those."""
    for (text, kind, name), values in results.items():
        others = results.get((text, kind, MEANS))
        if name == "multichase" and others:
            yield f"multichase / {MEANS}: {text} {kind} {statistics.median(values) / statistics.median(others):.3f}, least {min(values) / min(others):.3f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sizes", default="32K,256K,64M,1G")
    parser.add_argument("--kinds", default="base,thp")
    parser.add_argument("--cpu", type=int, help="the CPU that all tools run on")
    parser.add_argument("--samples", type=int, default=4, help="samples of half a second whose best counts, in each repeat")
    parser.add_argument("--when-quiet", type=float, metavar="MINUTES", help="count only turns without a neighbour, and end by then")
    parser.add_argument("--out")
    asked = parser.parse_args()
    if asked.cpu is not None:
        os.sched_setaffinity(0, {asked.cpu})
    results, quiets, cycles, seconds = {}, {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        tools = programs(folder)
        if "hugewise" not in tools:
            sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
        if asked.when_quiet and "independent" not in tools:
            sys.exit("--when-quiet asks the independent chase: install cc")
        turns = Turns(tools, asked)
        for text, kind, name, (ns, quiet, core), took in turns.all():
            seconds[name] = seconds.get(name, 0) + took
            results.setdefault((text, kind, name), []).append(ns)
            if quiet:
                quiets.setdefault((text, kind, name), []).append(quiet)
            if core:
                cycles.setdefault((text, kind), []).append(core)
    # Medians and least are over repeats. A neighbour's bursts last longer than a repeat: where it moves medians, least tells more.
    # Quiet: the 0.5 % quantile of short blocks, which a neighbour in the core's caches does not reach; the least of all repeats
    # is compared, because in some of them it was never quiet.
    lines = [
        "| size | pages | tool | turns | median ns | spread | hugewise / tool | least ns | hugewise / tool | quiet ns | hugewise / tool | quiet cycles |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (text, kind, name), values in results.items():
        if (text, kind, "hugewise") not in results:
            continue
        ours = statistics.median(results[(text, kind, "hugewise")])
        median = statistics.median(values)
        least, own_least = min(values), min(results[(text, kind, "hugewise")])
        spread = (max(values) - least) / least
        core = cycles.get((text, kind))
        shown = f"{min(core):.2f}" if core and name == "hugewise" else ""
        quiet, own = (min(quiets.get((text, kind, tool), [0])) for tool in (name, "hugewise"))
        quietly = f"{quiet:.3f} | {own / quiet:.3f}" if quiet and text[-1] == "K" else " | "
        lines.append(f"| {text} | {kind} | {name} | {len(values)} | {median:.3f} | {spread:.0%} | {ours / median:.3f} | {least:.3f} | {own_least / least:.3f} | {quietly} | {shown} |")
    lines += ["", *against_means(results)]
    if asked.when_quiet:
        lines.append(f"only what was quiet before and after; {turns.given_up} turns were asked again")
    lines.append("seconds in all: " + ", ".join(f"{name} {total:.0f}" for name, total in seconds.items()))
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
