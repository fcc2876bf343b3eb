#!/usr/bin/env python3
"""What verdicts of `hugewise compare` are worth, on live programs: proof of each run, comparisons of a program with itself, and rankings beside hyperfine.

    benches/proved.py pages [--times 20]         memtest on base pages and THP: no run on other pages counts, and as many pairs by hand (as root)
    benches/proved.py itself [--times 200]       two equal commands: how many comparisons give a verdict
    benches/proved.py ranks [--times 20]         two commands 5 % apart while bursts of other work come and go: who ranks them wrongly
    benches/proved.py forecast [--times 50]      what `--what-can-be-seen` says beside the comparisons of planted slow-downs that follow
    benches/proved.py readme                     examples of hyperfine's README, translated

`pages` takes --memtest "128 2": MiB and millions of steps. The program is taken from --hugewise, PATH or target/release; hyperfine and cc from PATH. Pairs by hand change the machine's THP
policy for each run, and --hold-reports two settings; both come back, and nothing else is changed.
"""

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from shared import THP, hugewise_path, put_back, reports_held_back

HERE = os.path.dirname(os.path.abspath(__file__))
MEMTEST = ["128", "2"]


def compared(hugewise, words, within=None):
    """The data of a comparison; its error text where there is none."""
    done = subprocess.run([hugewise, "compare", "--json", "--quiet", *words], capture_output=True, text=True, cwd=within)
    return json.loads(done.stdout)["data"] if done.stdout else done.stderr.strip()


def memtest(folder):
    program = os.path.join(folder, "memtest")
    subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "../workloads/memtest/memtest.c")], check=True)
    return program


def pairs_by_hand(program, pairs):
    """CPU time of the program under the policy `never` over that under `always`, pair by pair, as the kernel counts it for the child."""
    for at in range(pairs):
        times = {}
        for choice in random.sample(["never", "always"], 2):
            with put_back(THP, choice):
                before = sum(os.times()[2:4])
                subprocess.run([program, *MEMTEST], check=True, stdout=subprocess.DEVNULL)
                times[choice] = sum(os.times()[2:4]) - before
        yield times["never"] / times["always"]


def pages(hugewise, times, folder):
    program = memtest(folder)
    verdicts, counted_wrong, left_out, gains = {}, 0, 0, []
    for at in range(times):
        data = compared(hugewise, ["--arms", "base,thp", "--metric", "cpu", "--runs", "8", "--seed", str(at + 1), "--", program, *MEMTEST])
        if isinstance(data, str):
            verdicts[data] = verdicts.get(data, 0) + 1
            continue
        for arm in data["arms"]:
            for run in arm["runs"]:
                backing = run["backing"].get("known") if isinstance(run["backing"], dict) else None
                left_out += "left_out" in run
                if backing and "left_out" not in run:
                    share = backing.get(arm["kind"], 0) / max(sum(backing.values()), 1)
                    counted_wrong += share < data["design"]["least_coverage"]
        judged = data["verdicts"][0]
        gains.append(judged["ratio"])
        verdicts[judged["verdict"]] = verdicts.get(judged["verdict"], 0) + 1
        print(f"{at + 1}: {judged['verdict']} {judged['ratio']:.3f} by {data['arms'][1]['technique'][:60]}", flush=True)
    print(f"verdicts {verdicts}; runs on other pages that counted: {counted_wrong}; left out: {left_out}")
    by_hand = statistics.median(pairs_by_hand(program, times))
    agree = sum((gain > 1) == (by_hand > 1) for gain in gains)
    print(f"gains {min(gains):.3f} to {max(gains):.3f}; {times} pairs by hand {by_hand:.3f}: the sign of {agree} of {len(gains)} comparisons")


def itself(hugewise, times, _):
    commands = {
        "sleep": "sleep 0.01",
        "cpu": f"{sys.executable} -S -c 'sum(range(200000))'",
        "memory": f"{sys.executable} -S -c 'bytearray(20000000)'",
    }
    for name, command in commands.items():
        share = max(times // len(commands), 1)
        verdicts = {}
        for at in range(share):
            data = compared(hugewise, ["-N", "--runs", "10", "--seed", str(at + 1), command, command])
            verdict = data if isinstance(data, str) else data["verdicts"][0]["verdict"]
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
        wrong = verdicts.get("better", 0) + verdicts.get("worse", 0)
        print(f"{name}: {wrong} verdicts in {share} comparisons; {verdicts}", flush=True)


class Bursts(threading.Thread):
    """Another program that takes all CPUs for a while, and leaves them alone for a while."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(random.uniform(0.3, 1.5)):
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
            self.ended.wait(random.uniform(0.3, 1.5))
            for program in busy:
                program.kill()
                program.wait()


def ranks(hugewise, times, folder):
    """The second command does 5 % less. hyperfine ranks by its means; a verdict is wrong if it says that the second is worse."""
    work = "sum(range({}))"
    commands = [f"{sys.executable} -S -c '{work.format(count)}'" for count in (2_000_000, 1_900_000)]
    exported = os.path.join(folder, "hyperfine.json")
    wrong = {"hyperfine": 0, "hugewise": 0}
    found = 0
    bursts = Bursts()
    bursts.start()
    for at in range(times):
        both = commands if at % 2 == 0 else commands[::-1]
        faster = 1 if at % 2 == 0 else 0
        subprocess.run(["hyperfine", "-N", "--style", "none", "--runs", "15", "--export-json", exported, *both], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(exported) as file:
            means = [result["mean"] for result in json.load(file)["results"]]
        wrong["hyperfine"] += means[faster] > means[1 - faster]
        data = compared(hugewise, ["-N", "--runs", "10", "--seed", str(at + 1), *both])
        verdict = "" if isinstance(data, str) else data["verdicts"][0]["verdict"]
        wrong["hugewise"] += verdict == ("worse" if faster == 1 else "better")
        found += verdict == ("better" if faster == 1 else "worse")
    bursts.ended.set()
    bursts.join()
    print(f"of {times}: hyperfine ranks {wrong['hyperfine']} wrongly; hugewise {wrong['hugewise']} wrongly, {found} rightly, the others without a verdict")


def forecast(hugewise, times, _):
    """A program compared with itself, then with one that does 1 to 10 % more, in as many blocks each time: where a comparison ends early,
    its own interval is known too badly to hold a forecast against. Forecast: the smallest visible effect at that number of blocks, by the
    root of their number. Needed: the same from the interval that the comparison itself ended with."""
    found = 1.41
    blocks = "60"
    near = 0
    for at in range(times):
        count = 1_000_000
        usual, more = (f"{sys.executable} -S -c 'sum(range({n}))'" for n in (count, int(count * (1 + (at % 10 + 1) / 100))))
        own = ["--metric", "cpu", "-N", "--seed", str(at + 1)]
        pilot = compared(hugewise, [*own, "--what-can-be-seen", "20s", usual])
        data = compared(hugewise, [*own, "--runs", blocks, usual, more])
        judged, seen = data["verdicts"][0], pilot["forecast"]["visible"][0]
        said = math.log1p(seen["effect"]) * math.sqrt(seen["blocks"] / data["design"]["blocks"])
        needed = found * math.log(judged["high"] / judged["low"]) / 2
        near += abs(said / needed - 1) <= 0.25
        print(f"{at % 10 + 1} %: {judged['verdict']} after {data['design']['blocks']} blocks; forecast {said:.2%}, needed {needed:.2%}", flush=True)
    print(f"within 25 %: {near} of {times}")


README = [
    ("a command twice (hyperfine takes one)", ["sleep 0.03", "sleep 0.03"]),
    ("two commands", ["hexdump file", "od -x file"]),
    ("--runs", ["--runs", "5", "sleep 0.03", "sleep 0.04"]),
    ("--warmup", ["--warmup", "3", "grep -R TODO .", "grep -r TODO ."]),
    ("--prepare", ["--prepare", "sync", "grep -R TODO .", "grep -r TODO ."]),
    ("--parameter-scan", ["--prepare", "rm -f made", "--parameter-scan", "threads", "1", "3", "sort --parallel={threads} -o made file"]),
    ("decimal steps", ["--parameter-scan", "delay", "0.03", "0.07", "-D", "0.02", "sleep {delay}"]),
    ("-L", ["-L", "level", "-1,-9", "gzip {level} -k -c file > made"]),
    ("--shell", ["--shell", "bash", "for i in {1..1000}; do echo test; done", "for i in {1..2000}; do echo test; done"]),
    ("-N", ["-N", "grep TODO file", "grep -c TODO file"]),
    ("-n and --export-json", ["-n", "short", "-n", "long", "--export-json", "exported.json", "sleep 0.03", "sleep 0.05"]),
    ("-i", ["-i", "exit 1", "exit 2"]),
]


def readme(hugewise, _, folder):
    with open(os.path.join(folder, "file"), "w") as file:
        file.write("a line with TODO in it\n" * 20_000)
    for name, words in README:
        runs = [] if "--runs" in words else ["--runs", "3"]
        data = compared(hugewise, [*runs, *words], within=folder)
        told = data if isinstance(data, str) else f"works, {len(data['arms'])} commands"
        print(f"{name}: {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pages", "itself", "ranks", "forecast", "readme"])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--hugewise", default=hugewise_path())
    parser.add_argument("--memtest", default=" ".join(MEMTEST), help="pages: MiB and millions of steps")
    parser.add_argument("--hold-reports", action="store_true", help="as root: free pages are reported to the host later, where the kernel has switches for it")
    typed = parser.parse_args()
    MEMTEST[:] = typed.memtest.split()
    if len(MEMTEST) != 2:
        parser.error(f"--memtest {typed.memtest}: expected MiB and millions of steps, such as \"128 2\"")
    if not typed.hugewise or (typed.what == "ranks" and not shutil.which("hyperfine")):
        sys.exit("hugewise (--hugewise) or hyperfine is missing")
    made = {"pages": pages, "itself": itself, "ranks": ranks, "forecast": forecast, "readme": readme}[typed.what]
    held = reports_held_back() if typed.hold_reports else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, held:
        made(os.path.abspath(typed.hugewise), typed.times, folder)


if __name__ == "__main__":
    main()
