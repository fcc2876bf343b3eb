//! Machines that differ from the known ones: other kernels, other amounts of memory, files and lines that are missing.

use host::{Node, Tree};
use rand::RngExt;
use rand_pcg::Pcg64Mcg as Pcg64;

use crate::cases::Inputs;

const RELEASES: [&str; 18] = [
    "2.6.18-53.el5",
    "2.6.32-754.el6.x86_64",
    "3.10.0-1160.el7.x86_64",
    "4.4.0-210-generic",
    "4.9.0",
    "4.12.14",
    "4.18.0-553.el8.x86_64",
    "5.4.0-150-generic",
    "5.7.1",
    "5.10.0",
    "5.15.0-91-generic",
    "5.16.0",
    "6.1.0",
    "6.8.0",
    "6.12.10",
    "6.18.44",
    "7.0.1",
    "7.2.3-1-default",
];
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
/// Directories that a kernel may lack.
const GONE: [&str; 9] = [
    THP,
    "/sys/kernel/mm/transparent_hugepage/khugepaged",
    "/sys/kernel/mm/transparent_hugepage/shrink_underused",
    "/sys/kernel/mm/hugepages",
    "/sys/kernel/mm/hugepages/hugepages-1048576kB",
    "/sys/kernel/mm/hugepages/hugepages-2048kB",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/self/mounts",
    "/sys/devices/system/node",
];
/// What kernels of different ages write into the files of THP.
const CHOICES: [(&str, &str); 13] = [
    ("enabled", "[always] never"),
    ("enabled", "always madvise [never]"),
    ("enabled", "[always] madvise never"),
    ("enabled", "always [madvise] never"),
    ("defrag", "[always] never"),
    ("defrag", "[always] madvise never"),
    ("defrag", "[always] defer madvise never"),
    ("defrag", "always defer defer+madvise [madvise] never"),
    ("shmem_enabled", "always within_size advise [never] deny force"),
    ("khugepaged/max_ptes_none", "511"),
    ("khugepaged/max_ptes_none", "64"),
    ("hugepages-64kB/enabled", "[always] inherit madvise never"),
    ("anon_beside_full", "1"),
];
const MOUNTS: [&str; 5] = [
    "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "cgroup /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
    "none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n",
    "cgroup2 /sys/fs/cgroup cgroup2 rw,memory_hugetlb_accounting 0 0\n",
];
/// Files of configuration, and what stands in them: values that are taken, and values that are not.
const FILES: [(&str, &str); 8] = [
    ("/etc/sysctl.d/70-more.conf", "vm.nr_hugepages = 8G"),
    ("/etc/sysctl.d/70-more.conf", "vm.nr_hugepages = 0x1000 # pages"),
    (
        "/etc/default/grub",
        "GRUB_CMDLINE_LINUX=\"hugepagesz=1G hugepages=0:4,1:4\"",
    ),
    (
        "/etc/default/grub.d/50-pages.cfg",
        "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=900000\"",
    ),
    (
        "/etc/default/grub.d/60-thp.cfg",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"transparent_hugepages=never\"",
    ),
    ("/etc/tuned/active_profile", "own"),
    (
        "/etc/tuned/own/tuned.conf",
        "[sysctl]\nvm.nr_hugepages = 64000\n[bootloader]\ncmdline_x=+hugepagesz=1G hugepages=2",
    ),
    (
        "/etc/tmpfiles.d/thp.conf",
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - on",
    ),
];
const BOOT: [&str; 7] = [
    "hugepagesz=1G hugepages=0:4,1:4",
    "hugepages=8192",
    "hugepagesz=1G hugepages=80",
    "default_hugepagesz=1G hugepagesz=1G hugepages=2",
    "hugepagesz=3M hugepages=5 transparent_hugepage=never",
    "transparent_hugepage=always",
    "quiet",
];

/// Some mutations of a known machine and of the files beside it, or those of another case.
pub(crate) fn mutated(original: &Inputs, others: &[Inputs], number: u64, random: &mut Pcg64) -> Inputs {
    let mut inputs = original.clone();
    inputs.name = format!("mutation {number} of {}", original.name);
    if random.random_bool(0.3) {
        inputs
            .files
            .clone_from(&others[random.random_range(0..others.len())].files);
    }
    for _ in 0..random.random_range(1..=6) {
        if let Some(tree) = inputs.tree.take() {
            inputs.tree = Some(other_machine(tree, random));
        }
    }
    if random.random_bool(0.5) {
        for (_, bytes) in &mut inputs.files {
            *bytes = other_text(&String::from_utf8_lossy(bytes), random).into_bytes();
        }
    }
    inputs
}

fn one<'a, T: ?Sized>(of: &[&'a T], random: &mut Pcg64) -> &'a T {
    of[random.random_range(0..of.len())]
}

fn other_machine(tree: Tree, random: &mut Pcg64) -> Tree {
    match random.random_range(0..13) {
        0 => tree.without(one(&GONE, random)),
        1 => tree.line("/proc/sys/kernel/osrelease", one(&RELEASES, random)),
        2 => {
            let (name, value) = CHOICES[random.random_range(0..CHOICES.len())];
            tree.line(&format!("{THP}/{name}"), value)
        }
        3 => tree.file("/proc/self/mounts", one(&MOUNTS, random)),
        4 => tree.line("/proc/cmdline", one(&BOOT, random)),
        5 => {
            let pages = [0_u64, 100, 4096, 100_000, u64::MAX][random.random_range(0..5)];
            tree.line("/etc/sysctl.d/70-more.conf", format!("vm.nr_hugepages = {pages}"))
        }
        6 => memory(tree, random),
        7 => {
            let path = any_path(&tree, random);
            tree.without(&path)
        }
        8 => pool(tree, random),
        9 => {
            let (path, text) = FILES[random.random_range(0..FILES.len())];
            tree.line(path, text)
        }
        10 => tree.line("/proc/sys/vm/hugetlb_optimize_vmemmap", random.random_range(0..2)),
        _ => {
            let path = any_path(&tree, random);
            let bytes = tree
                .iter()
                .find(|(at, _)| *at == path)
                .and_then(|(_, node)| match node {
                    Node::File(bytes) => Some(bytes.clone()),
                    _ => None,
                });
            match bytes {
                Some(bytes) => tree.file(&path, other_text(&String::from_utf8_lossy(&bytes), random)),
                None => tree,
            }
        }
    }
}

/// Any path, the machine's own settings as often as all that belongs to processes.
fn any_path(tree: &Tree, random: &mut Pcg64) -> String {
    let own = random.random_bool(0.5);
    let is_process = |path: &str| {
        path.strip_prefix("/proc/")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let paths: Vec<&str> = tree
        .iter()
        .map(|(path, _)| path)
        .filter(|path| !own || !is_process(path))
        .collect();
    match paths.is_empty() {
        true => "/proc/meminfo".to_owned(),
        false => one(&paths, random).to_owned(),
    }
}

/// More memory, or less.
fn memory(tree: Tree, random: &mut Pcg64) -> Tree {
    let gib = [1_u64, 2, 8, 64, 512, 4096][random.random_range(0..6)];
    let text = tree
        .iter()
        .find(|(path, _)| *path == "/proc/meminfo")
        .and_then(|(_, node)| match node {
            Node::File(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        });
    let lines: Vec<String> = text
        .unwrap_or_default()
        .lines()
        .map(|line| match line.split_once(':') {
            Some(("MemTotal", _)) => format!("MemTotal: {} kB", gib << 20),
            Some(("MemAvailable", _)) => format!("MemAvailable: {} kB", (gib << 20) / random.random_range(1..=40)),
            _ => line.to_owned(),
        })
        .collect();
    tree.file("/proc/meminfo", lines.join("\n") + "\n")
}

/// Another number in a pool.
fn pool(tree: Tree, random: &mut Pcg64) -> Tree {
    let size = one(&["2048kB", "1048576kB"], random);
    let name = one(
        &[
            "nr_hugepages",
            "free_hugepages",
            "resv_hugepages",
            "surplus_hugepages",
            "nr_overcommit_hugepages",
        ],
        random,
    );
    let path = format!("/sys/kernel/mm/hugepages/hugepages-{size}/{name}");
    let value = [0_u64, 1, 64, 1024, 30_000, u64::MAX][random.random_range(0..6)];
    let is_there = tree.iter().any(|(at, _)| at == path);
    match is_there {
        true => tree.line(&path, value),
        false => tree,
    }
}

/// One number changed, or one line gone.
fn other_text(text: &str, random: &mut Pcg64) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return text.to_owned();
    }
    let at = random.random_range(0..lines.len());
    if random.random_bool(0.3) {
        lines.remove(at);
    } else {
        lines[at] = other_number(&lines[at], random);
    }
    lines.join("\n") + "\n"
}

fn other_number(line: &str, random: &mut Pcg64) -> String {
    let Some(begin) = line.find(|c: char| c.is_ascii_digit()) else {
        return line.to_owned();
    };
    let rest = &line[begin..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let old: u64 = rest[..digits].parse().unwrap_or(0);
    let new = match random.random_range(0..5) {
        0 => 0,
        1 => old.saturating_mul(1000),
        2 => old / 2,
        3 => u64::MAX,
        _ => old.saturating_add(1),
    };
    format!("{}{new}{}", &line[..begin], &rest[digits..])
}
