"""What the benches have in common: where hugewise is, what a command costs, and how a result is told."""
import os, shutil, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))


def hugewise_path():
    """From PATH, or from this tree's release build; None if it is in neither."""
    local = os.path.join(HERE, "..", "..", "target", "release", "hugewise")
    return shutil.which("hugewise") or (local if os.path.exists(local) else None)


def bring_in_order():
    """Gives free memory back in large pieces, as after a restart: base pages use up small ones first, and lie scattered then. As root, else not."""
    if os.geteuid():
        return
    os.sync()
    try:
        for switch in ["drop_caches", "compact_memory"]:
            with open(f"/proc/sys/vm/{switch}", "w") as file:
                file.write("1")
    except OSError as why:
        print(f"memory stays as it is: {why}", file=sys.stderr)


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
