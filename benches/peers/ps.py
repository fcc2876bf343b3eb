#!/usr/bin/env python3
"""Holds `hugewise ps` against other tools that count pages by process, and shows how long it holds up a large one.

Usage: ps.py [--repeats 5] [--processes 200] [--mib 3072] [--seconds 6] [--out FILE]

Speed: all tools list every process of this machine, interleaved; extra sleeping processes make it a busier one.
Peers, each used if it is found on PATH and named as skipped if not:
  smem     (Debian package smem), which reads smaps of every process
  thpmaps  (tools/mm/thpmaps of the Linux sources, needs numpy), which reads pagemap of every process
Tact: held.c of this folder fills memory with base pages and maps and unmaps a page in a loop; its longest round is
shown with nobody looking, under each tool, and under a plain read of its smaps.
hugewise itself is taken from PATH or from target/release.
"""
import argparse, os, shutil, statistics, subprocess, sys, tempfile, threading, time

from shared import cost, hugewise_path, tell

HERE = os.path.dirname(os.path.abspath(__file__))


def tools():
    found = {"hugewise ps": hugewise_path(), "smem": shutil.which("smem"), "thpmaps": shutil.which("thpmaps")}
    words = {"hugewise ps": ["ps", "--quiet"], "smem": [], "thpmaps": ["--rollup"]}
    for name, path in found.items():
        if not path:
            print(f"skipped: {name}: not on PATH", file=sys.stderr)
    return {name: [path, *words[name]] for name, path in found.items() if path}


def speed(commands, repeats):
    times = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            times[name].append(cost(command))
    median = {name: [statistics.median(column) for column in zip(*values)] for name, values in times.items()}
    ours = median["hugewise ps"]
    yield "| tool | CPU s, median | least | most | wall s, median | CPU / hugewise | wall / hugewise |"
    yield "|---|---|---|---|---|---|---|"
    for name, values in times.items():
        wall, cpu = median[name]
        spread = [seconds for _, seconds in values]
        yield (
            f"| {name} | {cpu:.4f} | {min(spread):.4f} | {max(spread):.4f} | {wall:.4f} "
            f"| {cpu / ours[1]:.1f} | {wall / ours[0]:.1f} |"
        )


def under(victim, seconds, look):
    """Longest round of the victim while `look` is called again and again, and how many looks that were."""
    stop, looks = threading.Event(), [0]

    def again():
        while not stop.is_set():
            look()
            looks[0] += 1

    thread = threading.Thread(target=again)
    victim.stdout.readline()
    thread.start()
    lines = [victim.stdout.readline().split() for _ in range(seconds)]
    stop.set()
    thread.join()
    return max(float(line[1]) for line in lines), sum(int(line[2]) for line in lines), looks[0]


def tact(commands, mib, seconds):
    compiler = shutil.which("cc")
    if not compiler:
        yield "skipped: cc is not on PATH"
        return
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, "held")
        subprocess.run([compiler, "-O2", "-o", binary, os.path.join(HERE, "held.c")], check=True)
        victim = subprocess.Popen([binary, str(mib), "3600"], stdout=subprocess.PIPE, text=True)
        yield f"Victim: {mib} MiB on base pages, {victim.stdout.readline().split()[1]} priority."
        yield ""
        yield "| who looks | longest round, us | rounds over 1 ms | looks |"
        yield "|---|---|---|---|"
        program, pid = commands["hugewise ps"][0], str(victim.pid)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        looks = {
            "nobody": lambda: time.sleep(0.1),
            "hugewise ps": lambda: subprocess.run(commands["hugewise ps"], **silent),
            "hugewise ps --why": lambda: subprocess.run([*commands["hugewise ps"], "--why"], **silent),
            "hugewise ps PID --vmas": lambda: subprocess.run([program, "ps", pid, "--vmas"], **silent),
            "hugewise doctor": lambda: subprocess.run([program, "doctor"], **silent),
            "cat smaps": lambda: subprocess.run(["cat", f"/proc/{pid}/smaps"], **silent),
            "cat smaps_rollup": lambda: subprocess.run(["cat", f"/proc/{pid}/smaps_rollup"], **silent),
        }
        try:
            for name, look in looks.items():
                longest, over, count = under(victim, seconds, look)
                yield f"| {name} | {longest:.0f} | {over} | {count} |"
        finally:
            victim.kill()
            victim.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--mib", type=int, default=3072)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--out")
    asked = parser.parse_args()
    commands = tools()
    if "hugewise ps" not in commands:
        sys.exit("hugewise is neither on PATH nor in target/release (cargo build --release)")
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(asked.processes)]
    try:
        count = sum(name.isdigit() for name in os.listdir("/proc"))
        lines = ["## Speed", "", f"{count} processes and threads of the kernel.", "", *speed(commands, asked.repeats)]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
        for sleeper in sleepers:
            sleeper.wait()
    lines += ["", "## Tact", "", *tact(commands, asked.mib, asked.seconds)]
    tell(lines, asked.out)


if __name__ == "__main__":
    main()
