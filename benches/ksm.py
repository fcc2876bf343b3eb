#!/usr/bin/env python3
"""KSM over two processes with equal pages here, over time, beside `hugewise simulate host` of the same.

usage: benches/ksm.py [--hugewise PATH] [--mib 64] [--equal 512] [--pages-to-scan 1000] [--sleep-millisecs 20] [--seconds 20] [--zeros]

Two processes map so many MiB each on transparent huge pages and fill them: of the 512 pages of each 2 MiB, the first ones (--equal) are
equal in both, the others are unique. KSM is then turned on. Prints a table in Markdown over time: huge pages split, MiB that merging
saves, each measured and simulated, with the greatest distance below. Simulated once with the kernel's usual CPU time for a page, and once with
that which ksmd took here. Settings of KSM and khugepaged are those of the machine before it ends, however it ends: another process waits for that. Needs root, and
a machine on which KSM is off.
"""

import argparse
import ctypes
import json
import mmap
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time

KSM = "/sys/kernel/mm/ksm"
KHUGEPAGED = "/sys/kernel/mm/transparent_hugepage/khugepaged"
PAGE, REGION = 4096, 2 << 20
MADV_MERGEABLE, MADV_HUGEPAGE = 12, 14


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def number(name):
    return int(read(f"{KSM}/{name}"))


def guarded(settings):
    """Settings that another process writes back once this one has ended, and the end of the pipe that it waits for."""
    before = [(path, read(path)) for path, _ in settings]
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(writer)
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, signal.SIG_IGN)
        os.read(reader, 1)
        # Merged pages first: run 2 gives each process its own again.
        write(f"{KSM}/run", 2)
        for path, value in reversed(before):
            write(path, value)
        os._exit(0)
    os.close(reader)
    for path, value in settings:
        write(path, value)
    return pid, writer, before


def filled(mib, equal, number_of, zeros):
    """Maps and fills memory in a process of its own; its id, and the pipe that ends it."""
    ready, told = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(ready[1])
        os.close(told[0])
        os.read(ready[0], 1)
        return pid, told[1]
    os.close(told[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    length = mib << 20
    area = mmap.mmap(-1, length + REGION, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    skip = -address % REGION
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for advice in (MADV_HUGEPAGE, MADV_MERGEABLE):
        if libc.madvise(address + skip, length, advice):
            os._exit(1)
    for page in range(length // PAGE):
        is_equal = page % 512 < equal
        if is_equal and zeros:
            word = b"\0" * 8
        else:
            word = (page << 8 | (0 if is_equal else 1 + number_of)).to_bytes(8, "little")
        at = skip + page * PAGE
        area[at : at + 8] = word
        area[at + PAGE - 8 : at + PAGE] = word
    os.write(ready[1], b"x")
    os.read(told[0], 1)
    os._exit(0)


def huge(pid):
    """Huge pages behind a process."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("AnonHugePages"))
    return int(line.split()[1]) * 1024 // REGION


def ksmd():
    """The kernel thread, and the seconds of a CPU that it took."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                if file.read().strip() != "ksmd":
                    continue
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return 0.0


def resident(pid):
    """Pages of a process; the kernel's page of zeros is none."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("Rss"))
    return int(line.split()[1]) * 1024 // PAGE


def measured(asked):
    """By time: huge pages split, MiB saved. Then nanoseconds of ksmd for each page, and pages scanned."""
    processes = [filled(asked.mib, asked.equal, which, asked.zeros) for which in range(2)]
    whole = sum(huge(pid) for pid, _ in processes)
    if whole < 2 * asked.mib // 2:
        print(f"only {whole} of {asked.mib} huge pages were there at the start", file=sys.stderr)
    settings = [
        (f"{KHUGEPAGED}/pages_to_scan", 1),
        (f"{KHUGEPAGED}/scan_sleep_millisecs", 600_000),
        (f"{KSM}/pages_to_scan", asked.pages_to_scan),
        (f"{KSM}/sleep_millisecs", asked.sleep_millisecs),
        (f"{KSM}/use_zero_pages", int(asked.use_zero_pages)),
        (f"{KSM}/run", 1),
    ]
    if os.path.exists(f"{KSM}/smart_scan"):
        settings.insert(4, (f"{KSM}/smart_scan", 0))
    pages_before = sum(resident(pid) for pid, _ in processes)
    scanned, used = number("pages_scanned") if os.path.exists(f"{KSM}/pages_scanned") else 0, ksmd()
    guard, writer, before = guarded(settings)
    begun, rows = time.monotonic(), []
    try:
        for tick in range(1, asked.samples + 1):
            time.sleep(max(0.0, begun + tick * asked.seconds / asked.samples - time.monotonic()))
            split = whole - sum(huge(pid) for pid, _ in processes)
            freed = number("pages_sharing") + pages_before - sum(resident(pid) for pid, _ in processes)
            rows.append((time.monotonic() - begun, split, freed * PAGE / 2**20))
        pages = number("pages_scanned") - scanned
        spent = (ksmd() - used) * 1e9 / max(pages, 1)
        took = (time.monotonic() - begun) * 1e9 / max(pages, 1)
    finally:
        for pid, end in processes:
            os.write(end, b"x")
            os.waitpid(pid, 0)
        os.close(writer)
        os.waitpid(guard, 0)
        changed = [(path, value, read(path)) for path, value in before if read(path) != value]
        if changed:
            print(f"not restored: {changed}", file=sys.stderr)
    return rows, whole, pages, spent, took


def simulated(asked, page_ns):
    content = "zero" if asked.zeros else "common"
    text = f"""
seconds = {asked.seconds}
step_ms = {asked.seconds * 1000 / asked.samples / 10}
policies = ["ksm"]
[host]
memory = "8G"
[ksm]
pages_to_scan = {asked.pages_to_scan}
sleep_millisecs = {asked.sleep_millisecs}
use_zero_pages = {str(asked.use_zero_pages).lower()}
page_ns = {page_ns}
[khugepaged]
pages_to_scan = 0
[[vm]]
name = "process"
count = 2
memory = "{asked.mib}M"
touch_mb_s = 1000000
zero = 0
common = 0
volatile = 0
clustered = 0
""".replace(f"\n{content} = 0\n", f"\n{content} = {asked.equal / 512}\n")
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        out = subprocess.run([asked.hugewise, "simulate", "host", file.name, "--json"], check=True, capture_output=True).stdout
    samples = json.loads(out)["data"]["outcomes"][0]["samples"]
    return [(sample["at_s"], sample["broken"], sample["saved"] / 2**20) for sample in samples]


def at(rows, when):
    return min(rows, key=lambda row: abs(row[0] - when))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hugewise", default="target/release/hugewise")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--equal", type=int, default=512)
    parser.add_argument("--pages-to-scan", type=int, default=1000)
    parser.add_argument("--sleep-millisecs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--zeros", action="store_true")
    parser.add_argument("--use-zero-pages", action="store_true")
    asked = parser.parse_args()
    if not os.path.exists(KSM):
        sys.exit(f"skipped: {KSM} does not exist: this kernel has no KSM")
    if os.geteuid() != 0:
        sys.exit("skipped: settings of KSM need root")
    if number("run") != 0 or number("pages_sharing") != 0:
        sys.exit("skipped: KSM is on, or has merged pages of others")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows, whole, pages, spent, took = measured(asked)
    usual, own = simulated(asked, 2000), simulated(asked, max(1, round(took - asked.sleep_millisecs * 1e6 / asked.pages_to_scan)))
    print(f"Linux {platform.release()}, {os.cpu_count()} CPUs, 2 x {asked.mib} MiB ({whole} huge pages), {asked.equal} of 512 pages equal\n")
    print("| s | split: measured | simulated | with ksmd's time here | MiB saved: measured | simulated | with ksmd's time here |")
    print("|---|---|---|---|---|---|---|")
    far = [0.0, 0.0]
    for when, split, mib in rows:
        one, other = at(usual, when), at(own, when)
        far = [max(far[0], abs(other[1] - split)), max(far[1], abs(other[2] - mib))]
        print(f"| {when:.1f} | {split} | {one[1]} | {other[1]} | {mib:.1f} | {one[2]:.1f} | {other[2]:.1f} |")
    print(f"\n{pages:,} pages scanned; ksmd: {spent:.0f} ns of CPU for each, {took:.0f} ns from page to page.")
    print(f"Greatest distance with ksmd's time here: {far[0]:.0f} huge pages, {far[1]:.1f} MiB. At the end: {rows[-1][1]} split, {own[-1][1]} simulated; "
          f"{rows[-1][2]:.1f} MiB saved, {own[-1][2]:.1f} simulated.")


if __name__ == "__main__":
    main()
