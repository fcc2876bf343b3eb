#!/usr/bin/env python3
"""What `predict` says huge pages save, beside what `compare --metric user` measures, on 24 programs that the model was not made with.

    benches/held_out.py [--set judged|develop] [--compare 45s] [--budget 20s] [--calibrate 90s] [--pin 0] [--thp-mode always] [--keep DIR] [--make compared,predicted] [--out FILE]

The split was fixed before any of them was run: by the SHA-256 of their names, the first 8 may be looked at while a model is changed (`develop`), the
other 16 judge it. Each is predicted by the CPU table, then compared. Where several processes run, the children
are what is compared, too. A program whose tools are not installed is skipped, and the table says so. What `--keep` has is not made again: comparisons
need a quiet machine, predictions do not (calibrated ones do), and another model can be held against the same comparisons. Run it as root: base pages then lie in the
simulated guest as those of the program do, and memory is brought in order before each comparison and each prediction, since scattered frames change what huge pages save
within minutes. A prediction counts by the share of memory that the compared arm had on huge pages. With `--calibrate` predictions are calibrated ones; the last column then has what all memory on huge pages saves by the runs on
half of it alone, which have not seen them.
"""
import argparse, contextlib, hashlib, json, os, re, shutil, statistics, sys, tempfile

from predict import HERE, NEAR, Program, compare, measured_tlb, result, row_of, run
from shared import THP, bring_in_order, hugewise_path, put_back, reports_held_back, tell

KERNELS = "updates list tree probe sparse dense quick heap sieve transpose stencil ranks".split()
TEXT = "{dir}/text"
MAKE_TEXT = "awk 'BEGIN { srand(7); for (i = 0; i < 3000000; i++) printf \"%d user%d %x\\n\", rand() * 1e9, rand() * 1e6, i * 2654435761 % 4294967296 }' > text"


def programs():
    kernels = f"cc -O2 -o kernels {os.path.join(HERE, 'predict', 'kernels.c')}"
    text = lambda name, needs, command: Program(name, needs, command, [MAKE_TEXT])
    written = lambda file, lines: f"cat > {file} <<'END'\n{lines}\nEND"
    script = lambda name, needs, command, file, lines, *more: Program(name, needs, command, [written(file, lines), *more])
    return [Program(name, ["cc"], "{dir}/kernels " + name, [kernels]) for name in KERNELS] + [
        Program("xz", ["xz"], f"xz -T1 -2 -c {TEXT}", [MAKE_TEXT + " && truncate -s 20000000 text"]),
        text("lz4", ["lz4"], f"lz4 -q -12 -c {TEXT}"),
        text("zstd", ["zstd"], f"zstd -q --single-thread -14 -c {TEXT}"),
        text("bzip2", ["bzip2"], f"bzip2 -c {TEXT}"),
        text("sort", ["sort"], f"sort --parallel=1 -S 1G -k 2 {TEXT}"),
        text("awk", ["awk"], "awk '{ n[$2] += $1; m[$3]++ } END { print length(n), length(m) }' " + TEXT),
        script("perl", ["perl"], "perl {dir}/hash.pl", "hash.pl", "my %h; for my $i (1..2000000) { $h{($i * 7919) % 2000003} = $i } my $s = 0; for my $i (1..3000000) { $s += $h{($i * 31) % 2000003} // 0 } print $s;"),
        script("python sort", ["python3"], "python3 {dir}/sort.py", "sort.py", "import random\nrandom.seed(5)\nrows = [(random.random(), i, str(i)) for i in range(1500000)]\nrows.sort()\nprint(sum(row[1] * 7 % 11 for row in rows))"),
        script("node", ["node"], "node --max-old-space-size=4000 {dir}/map.js", "map.js", "const m = new Map(); for (let i = 0; i < 3e6; i++) m.set((i * 7919) % 3000017, { v: i }); let s = 0; for (let i = 0; i < 9e6; i++) { const o = m.get((i * 31) % 3000017); if (o) s += o.v } console.log(s)"),
        script("java", ["java", "javac"], "java -Xms1g -Xmx1g -XX:+UseSerialGC -cp {dir} Maps", "Maps.java", "import java.util.*;\npublic class Maps { public static void main(String[] a) { TreeMap<Long, long[]> m = new TreeMap<>(); long x = 88172645463325252L, s = 0; for (int i = 0; i < 6000000; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; if (i < 2000000) m.put(x, new long[] {i}); else { var e = m.floorEntry(x); if (e != null) s += e.getValue()[0]; } } System.out.println(s); } }", "javac -d . Maps.java"),
        script("go trees", ["go"], "{dir}/trees", "trees.go", "package main\nimport \"fmt\"\ntype n struct{ l, r *n }\nfunc make_(d int) *n { if d == 0 { return &n{} }; return &n{make_(d - 1), make_(d - 1)} }\nfunc (t *n) sum() int { if t.l == nil { return 1 }; return 1 + t.l.sum() + t.r.sum() }\nfunc main() { long := make_(21); s := 0; for i := 0; i < 40; i++ { s += make_(15).sum() }; for i := 0; i < 12; i++ { s += long.sum() }; fmt.Println(s) }", "CGO_ENABLED=0 GO111MODULE=off GOCACHE={dir}/cache go build -o trees trees.go"),
        script("sqlite groups", ["sqlite3"], "sqlite3 -batch :memory: '.read {dir}/groups.sql'", "groups.sql", "create table sale(id integer primary key, buyer integer, price integer);\nwith recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000) insert into sale select i, (i * 7919) % 500009, i % 1000 from n;\ncreate index by_buyer on sale(buyer);\nselect count(*), max(total) from (select buyer, sum(price) total from sale group by buyer);"),
    ]


def chosen(which):
    by_hash = sorted(programs(), key=lambda one: hashlib.sha256(one.name.encode()).hexdigest())
    return by_hash[:8] if which == "develop" else by_hash[8:]


def saved(verdict):
    """What is saved of the time before, in percent: low, middle, high."""
    return [None if verdict[key] is None else 100 * (1 - 1 / verdict[key]) for key in ("low", "ratio", "high")]


def ranged(values):
    low, middle, high = ("?" if value is None else f"{value:+.1f}" for value in values)
    return f"{middle} ({low} to {high})"


def judged(hugewise, program, folder, asked, host):
    """Its line, and points off, whether the range holds, its width, whether the sign is right (None: no difference)."""
    missing = [need for need in program.needs if not shutil.which(need)]
    if missing:
        return f"| {program.name} | skipped: {', '.join(missing)} not installed ||||", None
    for line in program.build:
        code, why = run(["sh", "-c", line.replace("{dir}", folder)], cwd=folder)
        if code:
            return f"| {program.name} | not built: {why.strip().splitlines()[-1]} ||||", None
    shell = program.command.replace("{dir}", folder)

    def told_by(which, make):
        """The result of that name: a kept one, else one that is made now, if it is wanted."""
        file = os.path.join(asked.keep or folder, f"{program.name.replace(' ', '-')}-{which}.json")
        if not os.path.exists(file) and which.replace("calibrated", "predicted") in asked.make:
            told, why = make()
            if not told:
                print(f"{program.name}: {which}: {why}", file=sys.stderr, flush=True)
                return None
            with open(file, "w") as text:
                json.dump(told, text)
        return json.load(open(file)) if os.path.exists(file) else None

    def predicted(calibrate=asked.calibrate):
        bring_in_order()
        flags = [f"--calibrate={calibrate}"] if calibrate else []
        words = ["predict", "--budget", asked.budget, *flags, "--", "sh", "-c", f"exec {shell}"]
        told, why = result(hugewise, words, os.path.join(folder, "predicted.json"))
        least = re.search(r"write --calibrate=(\d+)s", json.dumps(told))
        return predicted(f"{int(least[1]) * 4 // 3}s") if least and calibrate == asked.calibrate else (told, why)

    def compared():
        """Within the budget, or a third more than a verdict takes at least, as calibrated predictions: runs differ in length."""
        bring_in_order()
        told, why = compare(hugewise, program, folder, asked.compare)
        least = re.search(r"write --budget (\d+)s", why or "")
        return compare(hugewise, program, folder, f"{int(least[1]) * 4 // 3}s") if least else (told, why)

    told = told_by("compared", compared)
    prediction = told_by("calibrated" if asked.calibrate else "predicted", predicted)
    row = prediction and row_of(prediction, host)
    if not told:
        return f"| {program.name} | not compared |||", None
    verdict = next(one for one in told["data"]["verdicts"] if one["arm"] == "thp" and one["metric"] == "user")
    truth = saved(verdict)
    differs = verdict["verdict"] in ("better", "worse")
    # The prediction is of all its memory on huge pages, the comparison of what an arm got.
    covered = next(arm["coverage"].get("median", 1) for arm in told["data"]["arms"] if arm["name"] == "thp")
    compared = f"| {program.name} | {ranged(truth)} {verdict['verdict']} | {100 * covered:.0f} % | "
    if row is None:
        return compared + "unknown ||", None
    saves = [100 * covered * row["saves"][key] for key in ("low", "middle", "high")]
    # Without an interval there is nothing to hold a prediction against: too few pairs, or pages that were not in effect.
    if truth[0] is None:
        return f"{compared}{ranged(saves)} | not counted |", None
    low, middle, high = saves
    off, holds = middle - truth[1], low <= truth[1] <= high
    line = f"{compared}{ranged(saves)} | {off:+.1f}{'' if holds else ' **out**'} |{by_half(prediction, covered)}"
    return line, (abs(off), holds, high - low, (middle > 0) == (truth[1] > 0) if differs else None)


def by_half(prediction, covered):
    """What runs on half of the memory alone say of all of it: as their shares on huge pages are to each other (the curve bends as they do)."""
    calibration = prediction["data"].get("calibration")
    if not calibration:
        return ""
    runs = {run["arm"]: run for run in calibration["observed"]}
    if "half" not in runs or "thp" not in runs:
        return " not known |"
    half, whole = runs["half"], runs["thp"]
    return f" {100 * covered * half['saves']['middle'] * whole['coverage'] / half['coverage']:+.1f} ({100 * half['coverage']:.0f} % covered) |"


def summed(counts, near):
    known = [one for one in counts if one]
    if not known:
        return "None was compared."
    signs = [one[3] for one in known if one[3] is not None]
    return (
        f"Within {near:g} points {sum(one[0] <= near for one in known)} of {len(known)}, the range holds {sum(one[1] for one in known)} of {len(known)}, "
        f"its median width {statistics.median(one[2] for one in known):.1f} points, sign right where there is a difference {sum(signs)} of {len(signs)}, "
        f"median error {statistics.median(one[0] for one in known):.1f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=["judged", "develop"], default="judged")
    parser.add_argument("--budget", default="20s", help="for each prediction")
    parser.add_argument("--compare", default="45s", help="for each comparison")
    parser.add_argument("--calibrate", help="time for the runs of each calibrated prediction; without it predictions are not calibrated")
    parser.add_argument("--only", help="programs by name, separated by commas")
    parser.add_argument("--keep", help="a directory of results that are not made again")
    parser.add_argument("--make", default="compared,predicted")
    parser.add_argument("--hold-reports", action="store_true", help="as root: free pages are reported to the host later, where the kernel has switches for it")
    parser.add_argument("--thp-mode", help="as root: the THP mode of the machine, for a while; with always, arms of most programs differ in pages alone")
    parser.add_argument("--pin", help="the CPU that all runs stay on: of a guest, CPUs can differ, and a pair of runs compares them, too")
    parser.add_argument("--out")
    asked = parser.parse_args()
    hugewise = hugewise_path() or sys.exit("hugewise is neither on PATH nor in target/release (cargo build --release)")
    wanted = [one for one in chosen(asked.set) if not asked.only or one.name in asked.only.split(",")]
    for program in wanted if asked.pin else []:
        program.command = f"taskset -c {asked.pin} {program.command}"
    lines = ["| program | compared, 95 % CI | covered | predicted | off |", "|---|---:|---:|---:|---:|"]
    if asked.calibrate:
        lines = ["| program | compared, 95 % CI | covered | calibrated | off | by half alone |", "|---|---:|---:|---:|---:|---:|"]
    print("\n".join(lines), flush=True)
    held = reports_held_back() if asked.hold_reports else contextlib.nullcontext()
    mode = put_back(THP, asked.thp_mode) if asked.thp_mode else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, held, mode:
        file = os.path.join(asked.keep or folder, "tlb.json")
        tlb = json.load(open(file)) if os.path.exists(file) else measured_tlb(hugewise, file)
        all_counts = []
        for program in wanted:
            inner = os.path.join(folder, program.name.replace(" ", "-"))
            os.mkdir(inner)
            line, counts = judged(hugewise, program, inner, asked, tlb["data"]["host_backing"]["verdict"])
            shutil.rmtree(inner)
            print(line, flush=True)
            lines.append(line)
            all_counts.append(counts)
    machine = tlb["machine"]
    lines += ["", summed(all_counts, 2.5 if asked.calibrate else NEAR)]
    head = [f"# Predicted and compared, programs held out ({asked.set}): {machine['cpu']}, kernel {machine['kernel']}", ""]
    tell(head + lines, asked.out)


if __name__ == "__main__":
    main()
