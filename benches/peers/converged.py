#!/usr/bin/env python3
"""Is the latency of large working sets the converged one? Holds `hugewise measure latency` against long walks, interleaved.

Usage: converged.py [--turns 5] [--sizes 64M,256M,1G,2G] [--kinds base,thp] [--cpu N] [--seconds 1] [--checkup] [--out FILE]

Peers walk one working set and nothing else for seconds, so their caches and page-table lines are as a long walk leaves them:
  independent  chase.c of this folder, its median after 4 M steps of warm-up
  multichase   (google/multichase) if it is on PATH, stride 64, -T the whole size, best of three samples of half a second;
               smaps of the running process must say that its memory is on the page kind that was asked for
Peers walk before and after hugewise by turns, so that a machine whose pace changes from minute to minute changes it for all.
A turn is calm if a long walk on base pages at 256M takes no more than 10 % longer than one at 64M: else other users of the
last-level cache leave no page-table lines in it, and a visit that is too short would not show. Only calm turns count; the
table has the others, too.
With --checkup: the values of a whole `hugewise checkup`, beside those of `measure latency --sizes` alone, above L2. The latter is measured
twice: what it differs from itself by is what the machine does.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, threading, time

from latency import size
from shared import HERE, hugewise_path, tell

CALM = 1.10


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def points(result):
    """(kind, bytes) -> median, bound if there is no median."""
    return {(p["kind"], p["bytes"]): (p["ns"] and p["ns"]["median"], p.get("bound"), p["ns"]) for p in result["data"]["points"]}


def hugewise(program, sizes, kinds):
    command = [program, "measure", "latency", "--sizes", ",".join(sizes), "--pages", ",".join(kinds), "--json", "--quiet", "--no-pool"]
    return points(json.loads(run(command)))


def independent(program, text, kind, seconds):
    return float(run([program, str(size(text)), kind, str(seconds)]).split()[0])


def on_huge_pages(pid, size):
    """AnonHugePages of a process as a share of that size; None while no mapping is as large. Mappings beside each other may be one."""
    huge, is_there = 0, False
    try:
        for line in open(f"/proc/{pid}/smaps"):
            if line.startswith("Rss:"):
                is_there |= int(line.split()[1]) << 10 >= 0.95 * size
            elif line.startswith("AnonHugePages:"):
                huge += int(line.split()[1]) << 10
    except OSError:
        return None
    return huge / size if is_there else None


def multichase(program, text, kind):
    """Its figure, or why it does not count."""
    huge = ["-H"] if kind == "thp" else []
    child = subprocess.Popen([program, "-m", str(size(text)), "-s", "64", "-T", str(size(text)), "-n", "3", *huge], stdout=subprocess.PIPE, text=True)
    share = None
    while child.poll() is None:
        seen = on_huge_pages(child.pid, size(text))
        share = seen if seen is not None else share
        time.sleep(0.05)
    out = child.stdout.read()
    if share is None or (kind == "thp") != (share > 0.95) or (kind == "base") != (share < 0.05):
        return None, f"multichase {text} {kind}: smaps says {share if share is None else f'{share:.0%}'} on huge pages"
    return float(out.split()[-1]), None


def a_turn(tools, asked, sizes, kinds):
    """Figures of all tools, one of independent before and one after the others, and the ratio that says whether it was calm."""
    walk = lambda kind, text: independent(tools["independent"], text, kind, asked.seconds)
    before = {(kind, text): walk(kind, text) for kind in kinds for text in sizes}
    seen = {("hugewise", *key): value for key, value in hugewise(tools["hugewise"], sizes, kinds).items()}
    for (kind, text), first in before.items():
        if tools["multichase"]:
            value, why = multichase(tools["multichase"], text, kind)
            if why:
                print(f"left out: {why}", flush=True)
            else:
                seen["multichase", kind, size(text)] = value
        seen["independent", kind, size(text)] = statistics.mean([first, walk(kind, text)])
    walks = [walk("base", text) for text in ("64M", "256M")]
    return seen, walks[1] / walks[0]


def lines_of(turns):
    """Ratios of each turn, and over calm turns."""
    yield "| turn | 256M / 64M | pages | size | hugewise | independent | multichase | hugewise / median of peers | peers apart |"
    yield "|---|---|---|---|---|---|---|---|---|"
    ratios = {"calm": {}, "contested": {}}
    for number, (seen, ratio) in enumerate(turns, 1):
        state = "calm" if ratio <= CALM else "contested"
        for (tool, kind, bytes), (ns, bound, _) in ((k, v) for k, v in seen.items() if k[0] == "hugewise"):
            peers = [seen[name, kind, bytes] for name in ("independent", "multichase") if (name, kind, bytes) in seen]
            middle, apart = statistics.median(peers), max(peers) / min(peers) - 1
            shown = f"{ns:.1f}" if ns else f"bound {bound}"
            if ns:
                ratios[state].setdefault((kind, bytes), []).append((ns / middle, apart))
            told = [f"{seen[name, kind, bytes]:.1f}" if (name, kind, bytes) in seen else "-" for name in ("independent", "multichase")]
            yield f"| {number} {state} | {ratio:.2f} | {kind} | {bytes >> 20}M | {shown} | {told[0]} | {told[1]} | {f'{ns / middle:.3f}' if ns else '-'} | {apart:.1%} |"
    yield ""
    yield f"calm turns: {sum(ratio <= CALM for _, ratio in turns)} of {len(turns)}"
    for state, points in ratios.items():
        for (kind, bytes), seen in points.items():
            middle = statistics.median(ratio for ratio, _ in seen)
            apart = statistics.median(apart for _, apart in seen)
            verdict = "within" if abs(middle - 1) <= max(0.04, apart) else "BEYOND"
            yield f"{state}: {kind} {bytes >> 20}M: median ratio {middle:.3f} of {len(seen)}, peers {apart:.1%} apart: {verdict} max(4 %, the peers' distance)"


def checkup(program, folder):
    """A whole checkup, then each of its points above L2 alone in groups of one size, twice."""
    report = os.path.join(folder, "report.html")
    begun = time.monotonic()
    result = json.loads(run([program, "checkup", "--report", report, "--json", "--quiet", "--no-pool", "--skip", "guest,tlb,ps,doctor"]))
    took = time.monotonic() - begun
    whole = points({"data": result["data"]["latency"]})
    yield f"checkup's latency: {took:.1f} s"
    private = max([bytes for (_, bytes) in (k for k, _ in whole.items()) if bytes <= 2 << 20] or [0])
    kinds = sorted({kind for kind, _ in whole if not kind.startswith("hugetlb")})
    worst = control = 0
    for bytes in sorted({bytes for _, bytes in whole if bytes > private}):
        alone, again = (hugewise(program, [f"{bytes >> 20}M"], kinds) for _ in range(2))
        for kind in kinds:
            ours, theirs, twice = whole[kind, bytes], alone[kind, bytes], again[kind, bytes]
            if theirs[0] and twice[0]:
                control = max(control, abs(twice[0] / theirs[0] - 1))
                itself = f"; alone again {twice[0]:.2f}: {twice[0] / theirs[0] - 1:+.1%}"
            else:
                itself = f"; alone again {twice[0] or twice[1]}"
            if ours[0] and theirs[0]:
                worst = max(worst, abs(ours[0] / theirs[0] - 1))
                yield f"{kind} {bytes >> 20}M: in checkup {ours[0]:.2f}, alone {theirs[0]:.2f}: {ours[0] / theirs[0] - 1:+.1%}{itself}"
            else:
                yield f"{kind} {bytes >> 20}M: in checkup {ours[0] or ours[1]}, alone {theirs[0] or theirs[1]}{itself}"
    yield f"largest distance: {worst:.1%}; alone from alone again: {control:.1%}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--sizes", default="64M,256M,1G,2G")
    parser.add_argument("--kinds", default="base,thp")
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--checkup", action="store_true")
    parser.add_argument("--out")
    asked = parser.parse_args()
    if asked.cpu is not None:
        os.sched_setaffinity(0, {asked.cpu})
    program = hugewise_path() or sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
    with tempfile.TemporaryDirectory() as folder:
        chase = os.path.join(folder, "chase")
        subprocess.run(["cc", "-O2", "-o", chase, os.path.join(HERE, "chase.c")], check=True)
        tools = {"hugewise": program, "independent": chase, "multichase": shutil.which("multichase")}
        if not tools["multichase"]:
            print("skipped: multichase: not on PATH")
        if asked.checkup:
            return tell(list(checkup(program, folder)), asked.out)
        turns = []
        for number in range(asked.turns):
            turns.append(a_turn(tools, asked, asked.sizes.split(","), asked.kinds.split(",")))
            print(f"turn {number + 1} of {asked.turns}: 256M takes {turns[-1][1]:.2f} times what 64M takes", file=sys.stderr, flush=True)
        tell(list(lines_of(turns)), asked.out)


if __name__ == "__main__":
    main()
