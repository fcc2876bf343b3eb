#!/usr/bin/env python3
"""Which mapped files are on huge pages, and does `explain` say so? Every case that this kernel can make, against smaps and kpageflags.

usage: sudo benches/files.py [--hugewise PATH] [--policies always,never] [--out FILE]

ext4, xfs and btrfs on loop devices, an overlay over xfs, tmpfs with each `huge=`; written in pieces of 2 MiB, or read anew from the disk; mapped
where the kernel puts it, at a multiple of 2 MiB, or 4 KiB beside one; to be read or written; without advice, with MADV_HUGEPAGE or
MADV_NOHUGEPAGE. `--policies` sets the THP policy of the machine for a few cases each, and sets it back.

All mounts are in a mount namespace of its own; images and folders are in a temporary directory. A case is right if explain and `ps --vmas` have the
share that FilePmdMapped and ShmemPmdMapped have (within one huge page), and a reason that the facts allow: what lies in huge folios by kpageflags
and is not mapped by them is unaligned or refused; what does not was not read so, or cannot be: a file system that never made one (in any case of
this run) is the reason itself.
"""
import argparse, ctypes, json, mmap, os, platform, signal, struct, subprocess, sys, tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
sys.path.insert(0, HERE)
from shared import THP, hugewise_path, tell

HUGE = 2 << 20
SIZE = 16 << 20
PLACE = 0x2000_0000_0000
DISKS = ["ext4", "xfs", "btrfs"]
TMPFS = ["never", "always", "within_size", "advise"]
ADVICE = {"-": None, "huge": 14, "nohuge": 15}
# kpageflags (linux/kernel-page-flags.h)
HEAD, TAIL, THP = 1 << 15, 1 << 16, 1 << 22


def hold(path, place, prot, advice):
    """Maps a file, touches each page, says where it is and waits."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    file = os.open(path, os.O_RDWR if prot == "rw" else os.O_RDONLY)
    fixed = 0x100000 if place else 0  # MAP_FIXED_NOREPLACE
    flags = mmap.MAP_SHARED | fixed
    prots = mmap.PROT_READ | (mmap.PROT_WRITE if prot == "rw" else 0)
    at = libc.mmap(place or None, SIZE, prots, flags, file, 0)
    if at == ctypes.c_void_p(-1).value:
        sys.exit(f"mmap: {os.strerror(ctypes.get_errno())}")
    if ADVICE[advice] and libc.madvise(at, SIZE, ADVICE[advice]):
        sys.exit(f"madvise: {os.strerror(ctypes.get_errno())}")
    memory = (ctypes.c_char * SIZE).from_address(at)
    sum(memory[offset][0] for offset in range(0, SIZE, 4096))
    print(f"{at:x}", flush=True)
    sys.stdin.read()


class Held:
    """A process that holds a mapping."""

    def __init__(self, path, place, prot, advice):
        words = [sys.executable, os.path.abspath(__file__), "--hold", path, str(place), prot, advice]
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.start = int(self.child.stdout.readline() or "0", 16)
        if not self.start:
            sys.exit(f"{path}: could not be mapped")
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()

    def smaps(self):
        """Bytes that are mapped by PMD entries."""
        lines = iter(open(f"/proc/{self.pid}/smaps"))
        for line in lines:
            if line.startswith(f"{self.start:x}-"):
                break
        pmd = 0
        for line in lines:
            if line.startswith(("FilePmdMapped", "ShmemPmdMapped")):
                pmd += int(line.split()[1]) << 10
            if line.startswith("VmFlags"):
                return pmd
        sys.exit("the mapping has no VmFlags")

    def folios(self):
        """Bytes of the file in huge folios, mapped by them or not."""
        with open(f"/proc/{self.pid}/pagemap", "rb") as pagemap, open("/proc/kpageflags", "rb") as flags:
            pagemap.seek(self.start // 4096 * 8)
            words = struct.unpack(f"{SIZE // 4096}Q", pagemap.read(SIZE // 4096 * 8))
            frames = [word & (1 << 55) - 1 if word >> 63 else None for word in words]
            huge = 0
            for block in range(0, len(frames), 512):
                first = frames[block]
                if not first or first % 512 or frames[block : block + 512] != list(range(first, first + 512)):
                    continue
                flags.seek(first * 8)
                all_flags = struct.unpack("512Q", flags.read(512 * 8))
                is_huge = all_flags[0] & THP and all_flags[0] & HEAD and all(one & TAIL for one in all_flags[1:])
                huge += HUGE * bool(is_huge)
            return huge


def told(program, pid, start, path):
    """Bytes on huge pages by explain (of the file) and by ps (of the mapping), and the reasons of both."""
    def result(*words):
        run = subprocess.run([program, *words, "--json", "--quiet"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"hugewise {' '.join(words)}: {run.stderr}")
        return json.loads(run.stdout)["data"]

    files = result("explain", str(pid))["programs"][0]["mapped"]["largest"]
    file = next(file for file in files if file["file"] == path)
    rows = result("ps", str(pid), "--vmas")["mappings"]
    row = next(row for row in rows if row["start"] == f"{start:x}")
    huge = [one["backing"].get("thp", 0) for one in (file, row)]
    return huge, [file["why"], row["why_base"]], file["file_system"]


def write(path):
    with open(path, "wb", buffering=0) as file:
        for _ in range(SIZE // HUGE):
            file.write(os.urandom(HUGE))
        os.fsync(file.fileno())


def drop(path):
    """Out of the page cache."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def mount_all(folder):
    """Name -> directory; what this kernel cannot mount is left out, with the reason."""
    found, left_out = {}, []

    def mounted(name, words, make=None):
        at = os.path.join(folder, name)
        os.makedirs(at, exist_ok=True)
        for command in [make, ["mount", *words, at]]:
            run = command and subprocess.run(command, capture_output=True, text=True)
            if run and run.returncode:
                left_out.append(f"{name}: {run.stderr.strip().splitlines()[-1]}")
                return
        found[name] = at

    for name in DISKS:
        image = os.path.join(folder, name + ".img")
        with open(image, "wb") as file:
            file.truncate(400 << 20)
        make = [f"mkfs.{name}", "-q", image]
        mounted(name, ["-o", "loop", image], make)
    if "xfs" in found:
        layers = [os.path.join(found["xfs"], layer) for layer in ("lower", "upper", "work")]
        for layer in layers:
            os.makedirs(layer)
        options = "lowerdir={},upperdir={},workdir={}".format(*layers)
        mounted("overlay", ["-t", "overlay", "-o", options, "overlay"])
    for huge in TMPFS:
        mounted(f"tmpfs {huge}", ["-t", "tmpfs", "-o", f"huge={huge},size=64M", "tmpfs"])
    return found, left_out


def cases(name):
    """Content, place, protection, advice."""
    places = {"kernel": 0, "fits": PLACE, "shifted": PLACE + 4096}
    for prot in ("ro", "rw"):
        for advice in ADVICE:
            for place, at in places.items():
                yield "written", place, at, prot, advice
            if not name.startswith("tmpfs"):
                yield "read anew", "fits", PLACE, prot, advice


def expected(row, can):
    """The reasons that the facts allow."""
    on_tmpfs = row["name"].startswith("tmpfs")
    if row["mapped"] == SIZE:
        return {None}
    if row["folios"] > row["mapped"]:
        # In huge folios, and not mapped by them.
        return {"advised-against"} if row["advice"] == "nohuge" else {"file-unaligned"}
    if not can[row["name"]]:
        return {"of-tmpfs"} if on_tmpfs else {"file-system"}
    allowed = set()
    if row["start"] % HUGE:
        allowed.add("file-unaligned")
    if row["advice"] == "nohuge":
        allowed.add("advised-against")
    if on_tmpfs:
        allowed.add("tmpfs-not-advised" if row["advice"] != "huge" else "not-given")
        return allowed
    allowed.add("file-cached" if row["advice"] == "huge" else "file-not-advised")
    return allowed - {"file-not-advised", "file-cached"} or allowed


def run_case(program, name, directory, policy, case):
    content, place, at, prot, advice = case
    path = os.path.join(directory, "data")
    write(path)
    if content == "read anew":
        drop(path)
    with Held(path, at, prot, advice) as held:
        huge, reasons, kind = told(program, held.pid, held.start, path)
        row = dict(name=name, policy=policy, content=content, place=place, prot=prot, advice=advice, start=held.start)
        row.update(mapped=held.smaps(), folios=held.folios(), told=huge, reasons=reasons, kind=kind)
    os.unlink(path)
    return row


def current():
    return open(THP).read().split("[")[1].split("]")[0]


def with_policies(program, found, policies):
    """A few cases under each policy; the machine's own is set back, whatever happens."""
    before, rows = current(), []
    few = [("written", "fits", PLACE, "ro", "-"), ("read anew", "fits", PLACE, "ro", "huge"), ("read anew", "fits", PLACE, "ro", "-")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    try:
        for policy in policies:
            open(THP, "w").write(policy)
            for name in [name for name in ("ext4", "xfs") if name in found]:
                rows += [run_case(program, name, found[name], policy, case) for case in few]
    finally:
        open(THP, "w").write(before)
    return rows


def report(rows, left_out, program):
    can = {}
    for row in rows:
        can[row["name"]] = can.get(row["name"], False) or row["folios"] > 0
    # What a tmpfs with advice has not is decided when the file grows, through a mapping.
    can.update({name: True for name in can if name == "tmpfs advise"})
    lines = [
        "| file system | THP policy | content | address | mapping | advice | mapped huge | explain | ps | huge folios | reason | right |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    wrong = 0
    for row in rows:
        allowed = expected(row, can)
        is_right = all(abs(huge - row["mapped"]) <= HUGE for huge in row["told"]) and set(row["reasons"]) <= allowed
        wrong += not is_right
        mib = [f"{bytes >> 20}M" for bytes in (row["mapped"], *row["told"], row["folios"])]
        reason = row["reasons"][0] or "-"
        verdict = "yes" if is_right else f"NO: allowed {', '.join(map(str, sorted(allowed, key=str)))}; ps {row['reasons'][1]}"
        lines.append("| " + " | ".join([row["name"], row["policy"], row["content"], row["place"], row["prot"], row["advice"], *mib, reason, verdict]) + " |")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    head = [
        "# Which mapped files are on huge pages, and what explain says of them",
        "",
        f"{version}, Linux {platform.release()}, `benches/files.py`: {len(rows)} mappings of 16 MiB, {len(rows) - wrong} right, {wrong} wrong.",
        "",
    ]
    head += [f"Not made here: {reason}\n" for reason in left_out]
    return head + lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hugewise", default=hugewise_path())
    parser.add_argument("--policies", default="", help="always,never: sets the machine's policy for a moment")
    parser.add_argument("--out")
    parser.add_argument("--only", help="file systems, such as ext4,overlay")
    args = parser.parse_args()
    if os.geteuid() or not args.hugewise:
        sys.exit("needs root, and hugewise in PATH, in target/release or by --hugewise")
    if "HUGEWISE_FILES_INSIDE" not in os.environ:
        own = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
        sys.exit(subprocess.run(own, env={**os.environ, "HUGEWISE_FILES_INSIDE": "1"}).returncode)
    with tempfile.TemporaryDirectory(prefix="hugewise-files-") as folder:
        found, left_out = mount_all(folder)
        try:
            chosen = {name: at for name, at in found.items() if not args.only or name in args.only.split(",")}
            rows = [run_case(args.hugewise, name, at, current(), case) for name, at in chosen.items() for case in cases(name)]
            rows += with_policies(args.hugewise, chosen, [policy for policy in args.policies.split(",") if policy])
        finally:
            for at in reversed(found.values()):
                subprocess.run(["umount", "-l", at])
    lines, wrong = report(rows, left_out, args.hugewise)
    tell(lines, args.out)
    sys.exit(min(wrong, 1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hold"]:
        hold(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        main()
