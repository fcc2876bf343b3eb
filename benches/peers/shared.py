"""What the benches have in common: where hugewise is, what a command costs, and how a result is told."""
import contextlib, mmap, os, re, shutil, signal, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def hugewise_path():
    """From PATH, or from this tree's release build; None if it is in neither."""
    local = os.path.join(HERE, "..", "..", "target", "release", "hugewise")
    return shutil.which("hugewise") or (local if os.path.exists(local) else None)


SMALL_ORDERS = 9  # below 2 MiB
held = []  # memory of this process that fills small pieces


def small_free_pages():
    """Pages in free pieces below 2 MiB, from which a program's memory would come first."""
    rows = [line.split() for line in open("/proc/pagetypeinfo")]
    rows = [row[6 : 6 + SMALL_ORDERS] for row in rows if row[3:6] == ["Normal,", "type", "Movable"]]
    return sum(int(count) << order for row in rows for order, count in enumerate(row))


def bring_in_order():
    """Leaves free memory in large pieces alone, as after a restart: base pages use up small ones first, and lie scattered then. As root, else not.

    What compaction cannot join is filled with memory of this process until the next call, of at most an eighth of what is available.
    """
    if os.geteuid():
        return
    while held:
        held.pop().close()
    os.sync()
    try:
        for switch in ["drop_caches", "compact_memory"]:
            with open(f"/proc/sys/vm/{switch}", "w") as file:
                file.write("1")
        most = os.sysconf("SC_AVPHYS_PAGES") // 8
        while most > 0 and (pages := min(small_free_pages(), most)) > 4096:
            memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(pages)
            held.append(memory)
            most -= pages
    except OSError as why:
        print(f"memory stays as it is: {why}", file=sys.stderr)


# How long memory is free before it is reported to the host (ms), and how much of it may wait; some kernels have these.
REPORTING = "/sys/module/page_reporting/parameters"
REPORTS = {"min_free_ms": "60000", "max_waiting_mib": "65536"}


@contextlib.contextmanager
def put_back(path, value):
    """A setting of the machine, for a while; of several choices the one in brackets comes back, also where this process is told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(path) as file:
        before = file.read().strip()
    chosen = re.search(r"\[([^\]]+)\]", before)
    try:
        put(path, value)
        yield
    finally:
        put(path, chosen[1] if chosen else before)


def put(path, value):
    with open(path, "w") as file:
        file.write(value)


@contextlib.contextmanager
def reports_held_back():
    """Free pages are reported to the host later, for a while. What was reported all the same is printed at the end."""
    if not all(os.path.exists(os.path.join(REPORTING, name)) for name in REPORTS):
        sys.exit(f"--hold-reports: this kernel has no {' and '.join(REPORTS)} in {REPORTING}")
    with contextlib.ExitStack() as stack:
        for name, most in REPORTS.items():
            stack.enter_context(put_back(os.path.join(REPORTING, name), most))
        before = reported()
        yield
        print(f"reported to the host all the same: {(reported() - before) >> 10} MiB", file=sys.stderr)


def reported():
    """KiB of free memory that were reported since the machine started."""
    with open(os.path.join(REPORTING, "reported_kib")) as file:
        return int(file.read())


def cost(command):
    """Wall and CPU seconds, those of all that it started and waited for among them; CPU is what a busy neighbour changes least."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command}: exit {child.returncode}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def tell(lines, path):
    """Prints lines, and writes them to a file if there is a path."""
    text = "\n".join(lines) + "\n"
    print(text)
    if path:
        with open(path, "w") as file:
            file.write(text)
