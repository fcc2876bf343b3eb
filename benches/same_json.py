#!/usr/bin/env python3
"""Does a new build answer in the same JSON as an old one, but for renamed fields?

usage: benches/same_json.py OLD NEW [--words]

Runs the commands that read a machine with both programs on every fixtures/machines/*.tree, applies RENAMED to the
results, and prints each path whose value differs. Text with a blank in it is prose and may be worded anew: such paths are
counted, and printed with --words. Exit code 1 if anything else differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Old key or code -> new one.
RENAMED = {"doubts": "warnings", "none-shown": "no-difference"}
# Differs from run to run, or names the program.
IGNORED = {"command", "started", "tool", "seconds"}
# Was sentences, is data.
REPLACED = {".data.verdict"}
GOALS = ["pool:2M=16", "pool:1G=4,node=0", "thp=madvise", "thp=always", "redis", "oracle:sga=24G", "kubernetes:2M=512",
         "jvm:heap=3584m,user=app", "vm:64G,pages=1G", "vm:64G"]
SIZES = ["reach", "pages 6G", "memlock 20G", "shmmax 8G", "esx-cpu --cores 48 --ghz 2.99 --reserved-mhz 10386", "esx-minfree 28G",
         "esx-memory --total 2048 --reserved 39", "esx-backing --memory 1960 --pages-1g 1941 --pages-2m 8605", "ksm",
         "idle-tax --shares 1000 --pages 250 --active 0.5", "gain --old 8527,8411,8298 --new 10042,10072,10120", "jvm --heap 6g",
         "oracle --sga 24G", "innodb --buffer-pool 8G", "vm --memory 64G", "dpdk --socket-mem 1G,1G", "redis --maxmemory 8G",
         "postgres --shared-buffers 8G"]
COMMANDS = ["doctor", "ps", "ps --sort total", "ps --by cgroup", "ps --why", "ps --numa", "vm", "checkup --report {dir}/report.html",
            *(f"plan --for {goal}" for goal in GOALS)]


def answer(program: str, command: str) -> tuple[int, object]:
    """The exit code and the parsed result; `None` where there is none."""
    with tempfile.TemporaryDirectory() as directory:
        words = command.format(dir=directory).split()
        ran = subprocess.run([program, *words, "--json", "--seed", "1", "--quiet"], capture_output=True, text=True, check=False)
    return ran.returncode, json.loads(ran.stdout) if ran.stdout.startswith("{") else None


def renamed(value):
    """A result under the new names."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): renamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item) for item in value]
    return RENAMED.get(value, value) if isinstance(value, str) else value


def differences(old, new, path=""):
    """Every path at which two results differ, with both values."""
    if path in REPLACED:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in IGNORED:
                yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new)):
            yield from differences(one, other, f"{path}[{place}]")
    elif path == ".schema" and old.rsplit("/", 1)[0] == new.rsplit("/", 1)[0]:
        return
    elif old != new:
        yield path, old, new


def is_prose(old, new) -> bool:
    return all(isinstance(value, str) and " " in value for value in (old, new))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--words", action="store_true", help="print paths whose prose differs too")
    options = parser.parse_args()
    machines = sorted((ROOT / "fixtures/machines").glob("*.tree"))
    runs = [f"--root {machine} {command}" for machine in machines for command in COMMANDS] + [f"size {words}" for words in SIZES]
    answered = different = prose = 0
    for command in runs:
        (old_code, old), (new_code, new) = answer(options.old, command), answer(options.new, command)
        answered += old is not None
        found = list(differences(renamed(old), renamed(new)))
        if old_code != new_code:
            found.append(("exit code", old_code, new_code))
        for path, before, after in found:
            worded = is_prose(before, after)
            prose += worded
            different += not worded
            if options.words or not worded:
                short = [json.dumps(value)[:160] for value in (before, after)]
                print(f"{command.replace(f'{ROOT}/', '')}: {path}: {short[0]} -> {short[1]}")
    print(f"{len(runs)} commands, {answered} with a result: {different} differences, {prose} of wording")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
