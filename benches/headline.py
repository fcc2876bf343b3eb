#!/usr/bin/env python3
"""Does the first sentence of `checkup` hold? Whole checkups, each followed by an independent paired chase at the same working sets.

Usage: headline.py [--runs 20] [--loaded 10] [--seconds 180] [--quick] [--scattered] [--out FILE]

Peer: peers/paired.c walks base pages and THP by turns for that long, on rings of its own in memory of its own. Of its ratio it prints the
standard error over its turns, too: what it does not know itself, nothing can be held against.
Where base pages lie decides what huge pages save: at 256M 6 % with frames in order and 17 to 22 % on scattered ones on one machine within minutes, and two programs in
turn get other frames. So as root memory is brought in order before each checkup and before each chase (`--scattered` leaves it as it is): the page cache is dropped,
memory compacted, and what is left in pieces below 2 MiB is held. Without the last step 256M saved 14 and 10 % in two runs, with half widths of 7 and 5 points.
Beside `--loaded` runs (every other one, until there are so many) `stress-ng` writes 1 GiB on another CPU, during checkup and chase.
A line for each run and working set: what the headline shows, its interval, the chase's saving, whether the interval holds it, half width,
wall time. The sum at the end is by runs: a run holds if all of its working sets hold.
"""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
sys.path.insert(0, HERE)
from shared import bring_in_order, hugewise_path, tell

LIMIT = {False: 60, True: 20}
NARROW = 3.0


class Load:
    """stress-ng on the last CPU, the other processes on the first; nothing without it."""

    def __init__(self, wanted):
        self.wanted = wanted

    def __enter__(self):
        cpus = sorted(os.sched_getaffinity(0))
        command = ["stress-ng", "--vm", "1", "--vm-bytes", "1G", "--vm-keep", "--taskset", str(cpus[-1]), "--quiet"]
        self.child = subprocess.Popen(command, start_new_session=True) if self.wanted else None
        time.sleep(2 if self.wanted else 0)
        return cpus[0]

    def __exit__(self, *_):
        if self.child:
            os.killpg(self.child.pid, signal.SIGTERM)
            self.child.wait()


def on(cpu, loaded, command):
    return ["taskset", "-c", str(cpu), *command] if loaded else command


def checkup(program, folder, cpu, loaded, quick):
    report = os.path.join(folder, "report.html")
    command = [program, "checkup", "--report", report, "--json", "--quiet", "--yes"] + ["--quick"] * quick
    began = time.monotonic()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["data"], time.monotonic() - began


def chase(program, cpu, loaded, seconds, sizes):
    """Bytes -> saving of THP in percent, its standard error in points."""
    out = subprocess.run(on(cpu, loaded, [program, str(seconds), *map(str, sizes)]), check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {int(row[0]): ((1 - float(row[1])) * 100, float(row[1]) * float(row[2]) * 100) for row in rows}


def shows(low, high):
    if -NARROW <= low and high <= NARROW:
        return "no-difference"
    return "saves" if low > 0 else "costs" if high < 0 else "cannot-tell"


def lines_of(number, loaded, data, wall, truths):
    """The lines of one run, and what counts of it."""
    headline = data["headline"]
    gains = [g for g in headline["gains"] if g["kind"] == "thp" and g["against"] == "base" and g["saved"]]
    lines, held, widest, signs = [], True, 0.0, True
    within = None
    for gain in gains:
        saved, (truth, error) = gain["saved"], truths[gain["bytes"]]
        low, high = saved["low"], saved["high"]
        holds, half = low <= truth <= high, (high - low) / 2
        verdict = shows(low, high)
        if gain["bytes"] < 1 << 20:
            within = verdict == "no-difference"
        else:
            held &= holds
            widest = max(widest, half)
            signs &= not (verdict == "saves" and truth < 0 or verdict == "costs" and truth > 0)
        size = f"{gain['bytes'] >> 20}M" if gain["bytes"] >> 20 else f"{gain['bytes'] >> 10}K"
        lines.append(
            f"| {number} | {'load' if loaded else ''} | {size} | {verdict} | {saved['percent']:.1f} ({low:.1f} to {high:.1f}) | {half:.1f} "
            f"| {truth:.1f} ± {error:.1f} | {'yes' if holds else 'NO'} | {headline['draws']} | {headline['seconds']:.0f} | {wall:.1f} |"
        )
    lines.append(f"| {number} | | | | {data['verdict']['sentences'][0]} | | | | | | |")
    return lines, (held, widest, signs, within, wall)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loaded", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scattered", action="store_true", help="leave free memory as it is")
    parser.add_argument("--out")
    asked = parser.parse_args()
    program = hugewise_path() or sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
    prepare = (lambda: None) if asked.scattered else bring_in_order
    if asked.loaded and not shutil.which("stress-ng"):
        sys.exit("stress-ng is not on PATH: install it, or --loaded 0")
    lines = ["| run | | size | shows | saved, % | half width | chase | holds | draws | headline, s | wall, s |", "|" + "---|" * 11]
    print("\n".join(lines), flush=True)
    sums = []
    with tempfile.TemporaryDirectory() as folder:
        peer = os.path.join(folder, "paired")
        subprocess.run(["cc", "-O2", "-o", peer, os.path.join(HERE, "paired.c"), "-lm"], check=True)
        for number in range(1, asked.runs + 1):
            loaded = number % 2 == 0 and number // 2 <= asked.loaded or asked.runs - number < asked.loaded - number // 2
            with Load(loaded) as cpu:
                prepare()
                data, wall = checkup(program, folder, cpu, loaded, asked.quick)
                sizes = sorted({gain["bytes"] for gain in data["headline"]["gains"]})
                prepare()
                truths = chase(peer, cpu, loaded, asked.seconds, sizes)
            own, counted = lines_of(number, loaded, data, wall, truths)
            print("\n".join(own), flush=True)
            lines += own
            sums.append(counted)
    total = len(sums)
    lines.append("")
    lines.append(
        f"{total} runs: interval holds the chase in {sum(s[0] for s in sums)}; half width at most {NARROW:.0f} points in "
        f"{sum(s[1] <= NARROW for s in sums)}; sign wrong in {sum(not s[2] for s in sums)}; within TLB reach no difference in "
        f"{sum(s[3] is True for s in sums)}; over {LIMIT[asked.quick]} s: {sum(s[4] > LIMIT[asked.quick] for s in sums)}; longest {max(s[4] for s in sums):.1f} s"
    )
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
