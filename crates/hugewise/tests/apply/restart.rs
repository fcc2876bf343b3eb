//! A restart for real, in a guest without KVM: what was applied with a file that sets it again at boot is verified after the
//! next boot, and undone there. The guest's disk between the boots is what it prints.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::skipped;
use crate::initramfs::Initramfs;
use crate::machine::{Bench, POOL, SHM_GROUP};

/// Far more than a boot takes, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(400);

/// Programs of the guest beside ours.
const PROGRAMS: [&str; 6] = ["dash", "mount", "sysctl", "tar", "base64", "cat"];

/// What the guest does at every boot: the kernel's files, settings from disk, then the test's own words.
const INIT: &str = "#!/bin/dash
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
for file in /etc/sysctl.d/*.conf; do [ -f $file ] && sysctl -q -p $file; done
dash /words
echo o > /proc/sysrq-trigger
while :; do :; done
";

const FIRST: &str = "
hugewise apply /plan.json --yes --leave 64M
echo RESULT apply $?
hugewise verify
echo RESULT verify $?
echo STATE
tar -C / -cf - etc/sysctl.d var/lib/hugewise | base64
echo END
";

const SECOND: &str = "
hugewise verify
echo RESULT verify $?
hugewise status
hugewise undo
echo RESULT undo $?
cat /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages
for file in /etc/sysctl.d/*.conf /var/lib/hugewise/*.jsonl; do [ -f $file ] && echo LEFT $file; done
hugewise status
echo RESULT status $?
";

/// The newest kernel there is to boot.
fn kernel() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HUGEWISE_TEST_KERNEL") {
        return Some(PathBuf::from(named));
    }
    let entries = std::fs::read_dir("/boot").ok()?.flatten().map(|entry| entry.path());
    let kernels = entries.filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    });
    kernels.max()
}

/// The guest's root at its first boot, or at the next with what was on disk.
fn root(plan: &str, words: &str, disk: Option<&Path>) -> Option<Vec<u8>> {
    let mut root = Initramfs::default();
    for (folder, mode) in [
        ("/proc", 0o755),
        ("/sys", 0o755),
        ("/dev", 0o755),
        ("/run", 0o755),
        ("/tmp", 0o1777),
    ] {
        root.directory(folder, mode);
    }
    disk.into_iter().for_each(|disk| root.tree(disk));
    root.file("/etc/sysctl.d/README", 0o644, b"");
    root.file("/init", 0o755, INIT.as_bytes());
    root.file("/words", 0o644, words.as_bytes());
    root.file("/plan.json", 0o644, plan.as_bytes());
    root.file("/var/lib/README", 0o644, b"");
    root.program_at(Path::new(env!("CARGO_BIN_EXE_hugewise")), "hugewise")?;
    PROGRAMS.iter().try_for_each(|name| root.program(name))?;
    Some(root.finish())
}

/// Boots a guest and gives back what it printed until it went off.
fn boot(kernel: &Path, root: &[u8], folder: &Path) -> Option<String> {
    let image = folder.join("initramfs");
    std::fs::write(&image, root).expect("written");
    let mut command = Command::new("qemu-system-x86_64");
    command.args([
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-m",
        "768",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
    ]);
    command.args([
        "-nodefaults",
        "-serial",
        "stdio",
        "-append",
        "console=ttyS0 quiet panic=-1",
    ]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(&image);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut out = child.stdout.take().expect("piped");
    let reader = thread::spawn(move || {
        let mut told = Vec::new();
        out.read_to_end(&mut told).expect("read");
        String::from_utf8_lossy(&told).replace('\r', "")
    });
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > TIMEOUT {
            child.kill().expect("killed");
        }
        thread::sleep(Duration::from_millis(100));
    }
    Some(reader.join().expect("read"))
}

/// Unpacks what the guest printed of its disk.
fn unpack(told: &str, folder: &Path) {
    let (_, state) = told.split_once("STATE\n").expect(told);
    let (state, _) = state.split_once("END\n").expect(told);
    let file = folder.join("state.base64");
    std::fs::write(&file, state).expect("written");
    let script = "mkdir disk && base64 -d state.base64 | tar -C disk --no-same-owner -xpf -";
    let unpacked = Command::new("sh").args(["-c", script]).current_dir(folder).status();
    assert!(unpacked.expect("runs").success(), "{told}");
}

#[test]
fn what_is_set_again_at_boot_is_verified_after_a_restart_and_undone() {
    let Some(bench) = Bench::set_up() else { return };
    let Some(kernel) = kernel() else {
        return skipped("no kernel to boot: install a linux-image package, or name one with HUGEWISE_TEST_KERNEL");
    };
    let settings = "vm.nr_hugepages = 8\nvm.hugetlb_shm_group = 70\n";
    let plan = bench.plan(vec![
        bench.setting("pool", POOL, json!(0), json!(8)),
        bench.setting("group", SHM_GROUP, json!("0"), json!("70")),
        bench.file("sysctl", "/etc/sysctl.d/60-hugewise.conf", json!(null), settings),
    ]);
    let plan = std::fs::read_to_string(plan).expect("read");
    let Some(first) = root(&plan, FIRST, None) else {
        return crate::common::missing("dash, mount, sysctl, tar, base64, cat or ldd");
    };
    let folder = bench.directory();
    let Some(told) = boot(&kernel, &first, folder) else {
        return crate::common::missing("qemu-system-x86_64");
    };
    assert!(
        told.contains("RESULT apply 0") && told.contains("RESULT verify 0"),
        "{told}"
    );
    unpack(&told, folder);

    let second = root(&plan, SECOND, Some(&folder.join("disk"))).expect("as before");
    let told = boot(&kernel, &second, folder).expect("as before");
    assert!(
        told.contains("3 of 3 changes in effect") && told.contains("restarted since"),
        "{told}"
    );
    assert!(
        told.contains("RESULT verify 0") && told.contains("RESULT undo 0\n0\n"),
        "{told}"
    );
    assert!(!told.contains("LEFT"), "{told}");
    assert!(told.contains("has changed nothing here that is not undone"), "{told}");
}
