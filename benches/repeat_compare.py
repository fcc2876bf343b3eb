#!/usr/bin/env python3
"""Do the intervals of `hugewise compare` hold when the whole comparison is repeated?

    benches/repeat_compare.py [--runs 6] [--budget 60s] [--only "go trees,sieve"] [--pin 0] [--thp-mode always] [--hold-reports] [--keep DIR] [--out FILE]

Compares programs of `held_out.py` on base pages and THP, all of them in turn, again and again, each time by new runs. If nothing differed between repeats but what an
interval can know, most intervals would hold the median of all repeats, and verdicts would not contradict each other. It needs a quiet machine. What `--keep` has is not
made again: give each set of options a directory of its own.
"""
import argparse, contextlib, json, os, statistics, tempfile

from held_out import chosen, ranged, saved
from predict import compare, run
from shared import THP, bring_in_order, hugewise_path, put_back, reports_held_back, tell


def once(hugewise, program, folder, asked, file):
    """What it saves (low, middle, high, %) and the verdict: of a kept result, else of a new one; None without an interval."""
    if not os.path.exists(file):
        bring_in_order()
        told, why = compare(hugewise, program, folder, asked.budget)
        if not told:
            print(f"{program.name}: {why}", flush=True)
            return None
        with open(file, "w") as text:
            json.dump(told, text)
    with open(file) as text:
        told = json.load(text)
    verdict = next((one for one in told.get("data", {}).get("verdicts", []) if one["arm"] == "thp" and one["metric"] == "user"), None)
    return (saved(verdict), verdict["verdict"]) if verdict and verdict["low"] is not None else None


def place(folder, program):
    return os.path.join(folder, program.name.replace(" ", "-"))


def line_of(name, repeats):
    known = [one for one in repeats if one]
    if not known:
        return f"| {name} | not compared ||||", (0, 0)
    middle = statistics.median(values[1] for values, _ in known)
    hold = sum(values[0] <= middle <= values[2] for values, _ in known)
    verdicts = [verdict for _, verdict in known]
    said = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
    return f"| {name} | {'; '.join(ranged(values) for values, _ in known)} | {middle:+.1f} | {hold} of {len(known)} | {said} |", (hold, len(known))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--only")
    parser.add_argument("--pin")
    parser.add_argument("--thp-mode")
    parser.add_argument("--hold-reports", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--out")
    asked = parser.parse_args()
    hugewise = hugewise_path() or parser.error("hugewise is neither on PATH nor in target/release (cargo build --release)")
    programs = [one for one in chosen("judged") if not asked.only or one.name in asked.only.split(",")]
    held = reports_held_back() if asked.hold_reports else contextlib.nullcontext()
    mode = put_back(THP, asked.thp_mode) if asked.thp_mode else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, held, mode:
        found = {}
        for program in programs:
            if asked.pin:
                program.command = f"taskset -c {asked.pin} {program.command}"
            os.mkdir(place(folder, program))
            for line in program.build:
                run(["sh", "-c", line.replace("{dir}", place(folder, program))], cwd=place(folder, program))
        for number in range(asked.runs):
            for program in programs:
                file = os.path.join(asked.keep or folder, f"{os.path.basename(place(folder, program))}-{number}.json")
                one = once(hugewise, program, place(folder, program), asked, file)
                found.setdefault(program.name, []).append(one)
                print(program.name, number, one and (ranged(one[0]), one[1]), flush=True)
    rows = [line_of(name, repeats) for name, repeats in found.items()]
    held, all = (sum(counts[at] for _, counts in rows) for at in (0, 1))
    head = ["| program | saved, each repeat | median | intervals that hold it | verdicts |", "|---|---|---:|---:|---|"]
    tell(head + [row for row, _ in rows] + ["", f"{held} of {all} intervals hold the median of their program."], asked.out)


if __name__ == "__main__":
    main()
