#!/usr/bin/env python3
"""What `predict` says huge pages save, beside what `compare --metric user` measures, on eight programs.

    benches/predict.py [--budget 20s] [--compare 5m] [--only "chase,static Go"] [--out FILE]

Each program is predicted by the CPU table and compared, one after the other; `measure tlb` finds the host's page size. A quiet machine is needed for figures to be published; short budgets show whether all of it works. hugewise is taken from PATH or from target/release. A program whose
tools are not installed is skipped, and the table says so.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from shared import hugewise_path, tell

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "workloads")
# Predictions are asked to be this near, in percentage points.
NEAR = 6.0


class Program:
    """What is built, what is run, and for a server what makes it work."""

    def __init__(self, name, needs, command, build=(), server=None):
        self.name, self.needs, self.command, self.build, self.server = name, needs, command, build, server


def programs():
    source = lambda *parts: os.path.abspath(os.path.join(*parts))
    ours = lambda name: source(HERE, "predict", name)
    work = lambda *parts: source(WORKLOADS, *parts)
    socket = "{dir}/redis.sock"
    serve = f"redis-server --port 0 --unixsocket {socket} --save '' --appendonly no --disable-thp no"
    ready = f"redis-cli -s {socket} ping && redis-benchmark -s {socket} -q -t set -n 800000 -r 400000 -d 512 -P 32"
    load = f"redis-benchmark -s {socket} -q -t get -n 2000000 -r 400000 -P 32"
    stop = f"redis-cli -s {socket} shutdown nosave"
    return [
        Program("chase", ["cc"], "{dir}/memtest 512 15", [f"cc -O2 -o memtest {work('memtest', 'memtest.c')}"]),
        Program("unordered_map", ["c++"], "{dir}/join 4000000 16000000", [f"c++ -O2 -o join {work('hash-join', 'join.cpp')}"]),
        Program("python dict", ["python3"], f"python3 {work('python', 'graph.py')}"),
        Program("sqlite", ["sqlite3"], f"sqlite3 -batch :memory: '.read {work('sqlite', 'join.sql')}'"),
        Program("redis", ["redis-server", "redis-benchmark"], serve, server=(ready, load, stop)),
        Program("JVM without flags", ["java", "javac"], "java -cp {dir} Lookup", [f"javac -d . {ours('Lookup.java')}"]),
        Program("static Go", ["go"], "{dir}/lookup", [f"CGO_ENABLED=0 GOCACHE={{dir}}/cache go build -o lookup {ours('lookup.go')}"]),
        Program("stream", ["cc"], "{dir}/stream", [f"cc -O2 -o stream {ours('stream.c')}"]),
    ]


def run(words, **more):
    done = subprocess.run(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **more)
    return done.returncode, done.stderr


def result(hugewise, words, file):
    """The JSON result of a command, or why there is none."""
    code, why = run([hugewise, *words, "--json", "--quiet", "--output", file] if "--" not in words else beside(hugewise, words, file))
    if not os.path.exists(file):
        return None, f"exit {code}: {why.strip().splitlines()[-1] if why.strip() else ''}"
    with open(file) as text:
        return json.load(text), None


def beside(hugewise, words, file):
    at = words.index("--")
    return [hugewise, *words[:at], "--json", "--quiet", "--output", file, *words[at:]]


def measured_tlb(hugewise, file):
    told, why = result(hugewise, ["measure", "tlb"], file)
    return told or sys.exit(f"measure tlb: {why}")


def predict(hugewise, program, folder, budget):
    shell = program.command.replace("{dir}", folder)
    words = ["predict", "--budget", budget, "--", "sh", "-c", f"exec {shell}"]
    if not program.server:
        return result(hugewise, words, os.path.join(folder, "predicted.json"))
    helper = threading.Thread(target=work, args=(program, folder), daemon=True)
    helper.start()
    told = result(hugewise, words, os.path.join(folder, "predicted.json"))
    helper.join(timeout=60)
    return told


def work(program, folder):
    """Has a server work as its load does, then stops it."""
    ready, load, stop = (part.replace("{dir}", folder) for part in program.server)
    for _ in range(6000):
        if run(["sh", "-c", ready])[0] == 0:
            break
        time.sleep(0.1)
    run(["sh", "-c", load])
    run(["sh", "-c", stop])


def compare(hugewise, program, folder, budget):
    shell = program.command.replace("{dir}", folder)
    words = ["compare", "--arms", "base,thp", "--metric", "user", "--design", "runs", "--budget", budget]
    if program.server:
        for flag, part in zip(["--ready", "--load", "--stop"], program.server):
            words += [flag, part.replace("{dir}", folder)]
    words += ["--", "sh", "-c", f"exec {shell}"]
    return result(hugewise, words, os.path.join(folder, "compared.json"))


def row_of(prediction, host):
    """Huge pages of this machine: in a guest on the host's pages, else native."""
    size = {"4K": 4 << 10, "2M": 2 << 20, "1G": 1 << 30}.get(host)
    calibration = prediction["data"].get("calibration")
    if calibration:
        size = calibration["base"]["host_page"]
    for row in prediction["data"]["rows"]:
        setting = row["setting"]
        is_mode = setting["mode"] == ("nested" if size else "native")
        if is_mode and setting["guest_page"] == 2 << 20 and setting.get("host_page") in (size, None):
            return row
    return None


def both(hugewise, program, folder, asked, host):
    """A line of the table, and what it counts for: near, sign right (none where there is no difference)."""
    missing = [need for need in program.needs if not shutil.which(need)]
    if missing:
        return f"| {program.name} | skipped: {', '.join(missing)} not installed |||||", None
    for line in program.build:
        code, why = run(["sh", "-c", line.replace("{dir}", folder)], cwd=folder)
        if code:
            return f"| {program.name} | not built: {why.strip().splitlines()[-1]} |||||", None
    predicted, why = predict(hugewise, program, folder, asked.budget)
    if not predicted:
        return f"| {program.name} | not predicted: {why} |||||", None
    compared, why = compare(hugewise, program, folder, asked.compare)
    row = row_of(predicted, host)
    if not compared or not row:
        return f"| {program.name} | not compared: {why} |||||", None
    verdict = next(one for one in compared["data"]["verdicts"] if one["arm"] == "thp" and one["metric"] == "user")
    saves = {key: 100 * row["saves"][key] for key in ("low", "middle", "high")}
    # A ratio is how many times better; what is saved is a share of the time before.
    gain = [100 * (1 - 1 / verdict[key]) if verdict[key] is not None else None for key in ("low", "ratio", "high")]
    shown = "unknown" if gain[1] is None else f"{gain[1]:+.1f} %"
    if None not in gain:
        shown += f" ({gain[0]:+.1f} to {gain[2]:+.1f})"
    differs = verdict["verdict"] in ("better", "worse")
    near = gain[1] is not None and abs(saves["middle"] - gain[1]) <= NEAR
    sign = (saves["middle"] > 0) == (gain[1] > 0) if differs else None
    off = "" if gain[1] is None else f"{saves['middle'] - gain[1]:+.1f}"
    line = f"| {program.name} | {saves['middle']:+.1f} % ({saves['low']:+.1f} to {saves['high']:+.1f}) | {shown} | {verdict['verdict']} | {off} | "
    return line + {True: "yes", False: "no", None: "-"}[sign] + " |", (near, sign)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="60s", help="for each prediction")
    parser.add_argument("--compare", default="5m", help="for each comparison")
    parser.add_argument("--only", help="programs by name, separated by commas")
    parser.add_argument("--out")
    asked = parser.parse_args()
    hugewise = hugewise_path() or sys.exit("hugewise is neither on PATH nor in target/release (cargo build --release)")
    names = [one.name for one in programs()]
    only = asked.only.split(",") if asked.only else names
    if unknown := [name for name in only if name not in names]:
        sys.exit(f"no such program: {', '.join(unknown)}; one of {', '.join(names)}")
    wanted = [one for one in programs() if one.name in only]
    with tempfile.TemporaryDirectory() as folder:
        tlb = measured_tlb(hugewise, os.path.join(folder, "tlb.json"))
        host = tlb["data"]["host_backing"]["verdict"]
        told = []
        for program in wanted:
            inner = os.path.join(folder, program.name.replace(" ", "-"))
            os.mkdir(inner)
            told.append(both(hugewise, program, inner, asked, host))
            print(told[-1][0], file=sys.stderr, flush=True)
    machine = tlb["machine"]
    known = [counted for _, counted in told if counted]
    signs = [sign for _, sign in known if sign is not None]
    lines = [
        f"# Predicted and compared: {machine['cpu']}, kernel {machine['kernel']}",
        "",
        f"Command: `benches/predict.py {' '.join(sys.argv[1:])}`. Hypervisor {machine['hypervisor']}, host pages by timing: {host}. User time that 2 MiB pages",
        "save against base pages; in brackets the prediction's range and the comparison's 95 % CI.",
        "",
        "| program | predicted | compared | verdict | points off | sign right |",
        "|---|---:|---:|---|---:|---|",
        *(line for line, _ in told),
        "",
        f"Within {NEAR:g} percentage points: {sum(near for near, _ in known)} of {len(known)}. Sign right where there is a difference: {sum(signs)} of {len(signs)}.",
    ]
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
