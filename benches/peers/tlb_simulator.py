#!/usr/bin/env python3
"""Holds `hugewise simulate translation` against DynamoRIO's TLB simulator: same file, same geometry; miss counts must be equal.

Usage: tlb_simulator.py [--drmemtrace PROGRAM] [--accesses 20000000] [--memory 1G] [--repeats 3] [--patterns random,chase,zipf,stream] [--out FILE]

Peer: the drmemtrace launcher of DynamoRIO (`drmemtrace_launcher -infile FILE -tool TLB`), named by --drmemtrace or found on PATH.
hugewise itself is taken from PATH or from target/release.

Each trace is one thread: one instruction fetch, then loads, as raw drmemtrace records of 12 bytes. Both simulate TLBs of 64 entries in
4 ways and 1,536 in 12, pages of 4 KiB and LRU. Counts of data misses in both levels must be equal; the launcher adds the misses of that
fetch to its second level. Times are of whole commands, reading included, in turns; the least of the repeats counts. The file is in the
page cache for both.
"""
import argparse, array, itertools, json, os, random, re, shutil, struct, subprocess, sys, tempfile

from shared import cost, hugewise_path, tell

UNITS = {"M": 1 << 20, "G": 1 << 30}
PAGE, LINE = 4096, 64
BEGIN, CODE = 0x7F00_0000_0000, 0x40_1000
READ, INSTRUCTION, THREAD, THREAD_EXIT, PID, HEADER, FOOTER, MARKER = 0, 10, 22, 23, 24, 25, 26, 28
# Markers by their number, which stands where other records have a size; and their values.
TIMESTAMP, CPU_ID, FILETYPE, VERSION = 2, 3, 9, 12
RECORDS, X86_64 = 3, 0x40
MACHINE = """name = "64 entries in 4 ways, 1536 in 12"
page_sizes = ["4K"]
walk_caches = [0, 0, 0, 0]
nested_tlb = 0
[[tlb]]
level = 1
kind = "data"
pages = ["4K"]
entries = 64
ways = 4
[[tlb]]
level = 2
kind = "unified"
pages = ["4K"]
entries = 1536
ways = 12
"""
GEOMETRY = "-cores 1 -page_size 4096 -TLB_L1D_entries 64 -TLB_L1D_assoc 4 -TLB_L1I_entries 64 -TLB_L1I_assoc 4 -TLB_L2_entries 1536 -TLB_L2_assoc 12 -TLB_replace_policy LRU"


def offsets(pattern, memory):
    """Bytes from the beginning of the memory, without end."""
    chance = random.Random(pattern)
    lines, pages = memory // LINE, memory // PAGE
    if pattern == "random":
        while True:
            yield from (LINE * chance.randrange(lines) for _ in range(1 << 16))
    if pattern == "stream":
        while True:
            yield from range(0, memory, 8)
    if pattern == "chase":
        # A ring through all lines, in a random order.
        ring = array.array("L", range(lines))
        chance.shuffle(ring)
        while True:
            yield from (LINE * line for line in ring)
    # The page of rank r is used as often as 1/r^0.99 says; ranks are spread over the memory.
    weights = list(itertools.accumulate(rank**-0.99 for rank in range(1, pages + 1)))
    spread = list(range(pages))
    chance.shuffle(spread)
    while True:
        yield from (PAGE * page for page in chance.choices(spread, cum_weights=weights, k=1 << 16))


def record(kind, value, size=0):
    return struct.pack("<HHQ", kind, size, value)


def write_trace(path, pattern, memory, accesses):
    with open(path, "wb") as file:
        file.write(record(HEADER, RECORDS) + record(MARKER, RECORDS, VERSION) + record(MARKER, X86_64, FILETYPE))
        file.write(record(THREAD, 1) + record(PID, 1) + record(MARKER, 1, TIMESTAMP) + record(MARKER, 0, CPU_ID))
        file.write(record(INSTRUCTION, CODE, 4))
        loads = itertools.islice(offsets(pattern, memory), accesses)
        while chunk := array.array("Q", (BEGIN + offset for offset in itertools.islice(loads, 1 << 20))):
            addresses, records = chunk.tobytes(), bytearray(record(READ, 0, 8) * len(chunk))
            for byte in range(8):
                records[4 + byte :: 12] = addresses[byte::8]
            file.write(records)
        file.write(record(THREAD_EXIT, 1) + record(FOOTER, 0))


def hugewise_command(program, machine, trace):
    return [program, "simulate", "translation", "--machine", machine, "--trace", trace, "--mode", "native", "--pages", "4K", "--json", "--quiet"]


def peer_command(program, trace):
    return [program, "-infile", trace, "-tool", "TLB", *GEOMETRY.split()]


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def hugewise_misses(command):
    case = json.loads(output(command)[0])["data"]["cases"][0]
    return [round(rate * case["accesses"]) for rate in case["miss_rates"]]


def peer_misses(command):
    """Misses of the first level's data side and of the second level, and of instruction fetches in the first."""
    text = "".join(output(command))
    found = {}
    for name, body in re.findall(r"(L1I|L1D|LL)(?: \S+)* stats:\n(.*?)(?=\n\s*(?:L1I|L1D|LL|Core)|\Z)", text, re.S):
        misses = re.search(r"Misses:\s+([\d,.]+)", body)
        found[name] = int(re.sub(r"\D", "", misses[1]))
    if set(found) != {"L1I", "L1D", "LL"}:
        sys.exit(f"{command}: unexpected output:\n{text}")
    return [found["L1D"], found["LL"]], found["L1I"]


def compared(asked, pattern, folder, machine):
    trace = os.path.join(folder, f"{pattern}.trace")
    write_trace(trace, pattern, asked.memory, asked.accesses)
    ours, theirs = hugewise_command(asked.hugewise, machine, trace), peer_command(asked.drmemtrace, trace)
    misses, (peers, fetches) = hugewise_misses(ours), peer_misses(theirs)
    times = [(cost(ours)[0], cost(theirs)[0]) for _ in range(asked.repeats)]
    os.remove(trace)
    is_equal = misses == [peers[0], peers[1] - fetches]
    least, peer_least = (min(side) for side in zip(*times))
    rate = lambda seconds: f"{asked.accesses / seconds / 1e6:.1f}"
    shown = [f"{number:,}" for pair in zip(misses, peers) for number in pair]
    row = [pattern, *shown, str(fetches), "yes" if is_equal else "NO", rate(least), rate(peer_least), f"{peer_least / least:.1f}"]
    return "| " + " | ".join(row) + " |", is_equal


def size(text):
    return int(text[:-1]) * UNITS[text[-1]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--drmemtrace", default=shutil.which("drmemtrace_launcher"), help="DynamoRIO's launcher [default: drmemtrace_launcher on PATH]")
    parser.add_argument("--hugewise", default=hugewise_path())
    parser.add_argument("--accesses", type=int, default=20_000_000)
    parser.add_argument("--memory", type=size, default=1 << 30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--patterns", default="random,chase,zipf,stream")
    parser.add_argument("--out")
    asked = parser.parse_args()
    if not asked.hugewise:
        sys.exit("hugewise is not on PATH and not in target/release: cargo build --release")
    if not asked.drmemtrace:
        sys.exit("skipped: drmemtrace_launcher is not on PATH (DynamoRIO): name it with --drmemtrace")
    lines = [
        f"{asked.accesses:,} loads over {asked.memory >> 20} MiB; end to end, the least of {asked.repeats} turns",
        "",
        "| trace | L1 misses | DynamoRIO's | L2 misses | DynamoRIO's | fetches among them | equal | hugewise, M/s | DynamoRIO, M/s | ratio |",
        "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "machine.toml")
        with open(machine, "w") as file:
            file.write(MACHINE)
        for pattern in asked.patterns.split(","):
            row, is_equal = compared(asked, pattern, folder, machine)
            lines.append(row)
            equal &= is_equal
    tell(lines, asked.out)
    if not equal:
        sys.exit("miss counts differ")


if __name__ == "__main__":
    main()
