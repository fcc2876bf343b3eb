//! Rules that depend on the kernel's release, each on made machines of nine of them and on captured ones of seven: where it fires, and where
//! it is silent.

use host::Tree;

use crate::machines::*;
use crate::{Verdict, explain};

/// The releases, each with its files of this topic as its documentation lists them.
const RELEASES: [&str; 9] = [
    "4.18.0-553.el8.x86_64",
    "5.14.0-427.el9.x86_64",
    "6.1.0-18-amd64",
    "6.8.0-31-generic",
    "6.12.10",
    "6.18.44",
    "7.0.3",
    "7.2.1",
    "7.4.0-rc1",
];

const SIZES: [u64; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
const OFF: &str = "always inherit madvise [never]";
const INHERIT: &str = "always [inherit] madvise never";
const QUIET: &str = "quiet";

fn number(release: &str) -> [u32; 2] {
    let mut parts = release.split(['.', '-']).map(|part| part.parse().expect("a number"));
    [parts.next().expect("major"), parts.next().expect("minor")]
}

fn plain(release: &str) -> Tree {
    let since = |major, minor| number(release) >= [major, minor];
    let mut tree = machine().line("/proc/sys/kernel/osrelease", release);
    for size in SIZES.into_iter().filter(|_| since(6, 8)) {
        let policy = if size == 2048 { INHERIT } else { OFF };
        tree = thp(tree, &format!("hugepages-{size}kB/enabled"), policy);
        if since(6, 10) {
            tree = thp(tree, &format!("hugepages-{size}kB/stats/anon_fault_alloc"), 0);
        }
        if since(6, 12) {
            tree = thp(tree, &format!("hugepages-{size}kB/shmem_enabled"), policy);
        }
    }
    if since(6, 12) {
        tree = thp(tree, "shrink_underused", 1);
    }
    if since(5, 19) {
        tree = tree.line("/proc/sys/vm/hugetlb_optimize_vmemmap", 0);
    }
    if !since(5, 11) {
        tree = thp(tree, "debug_cow", 0);
    }
    tree
}

/// What is wrong with a machine of that release, and the first release on which the rule fires.
struct Row {
    rule: &'static str,
    what: &'static str,
    plant: fn(Tree, [u32; 2]) -> Tree,
    since: [u32; 2],
}

const NEVER: [u32; 2] = [u32::MAX, 0];

const ROWS: [Row; 17] = [
    row("D22", "nothing", |tree, _| tree, NEVER),
    row("D22", "thp_anon= names 64K alone", dropped, [6, 12]),
    row("F06", "nothing", |tree, _| tree, NEVER),
    row(
        "F06",
        "40 sessions",
        |tree, number| sessions(tree, number, QUIET),
        [7, 0],
    ),
    row(
        "F06",
        "40 sessions, preempt=lazy",
        |tree, number| sessions(tree, number, "preempt=lazy"),
        [6, 13],
    ),
    row("D05", "advised memory, no stalls", |tree, _| advised(tree, 3), NEVER),
    row(
        "D05",
        "advised memory, stalls",
        |tree, _| advised(tree, 911_203),
        [0, 0],
    ),
    row("D33", "max_ptes_none=511", |tree, _| ptes_none(tree, 511), NEVER),
    row("D33", "max_ptes_none=64", |tree, _| ptes_none(tree, 64), [7, 2]),
    row("C10", "a group without accounting", |tree, _| group(tree, "rw"), NEVER),
    row("C10", "a group with accounting", accounted, [6, 7]),
    row("A21", "small pools", |tree, _| large_pool(tree, 1024), NEVER),
    row("A21", "pools of 128G", |tree, _| large_pool(tree, 65_536), [5, 19]),
    row(
        "G08",
        "a usual guest",
        |tree, _| guest(tree, "memory-backend-memfd,id=m,size=1G"),
        NEVER,
    ),
    row(
        "G08",
        "a confidential guest",
        |tree, _| guest(tree, "sev-snp-guest,id=sev0"),
        [6, 8],
    ),
    row("I02", "nothing", |tree, _| tree, [7, 4]),
    row(
        "I02",
        "a file of a later kernel",
        |tree, _| thp(tree, "anon_beside_full", 1),
        [0, 0],
    ),
];

const fn row(rule: &'static str, what: &'static str, plant: fn(Tree, [u32; 2]) -> Tree, since: [u32; 2]) -> Row {
    Row {
        rule,
        what,
        plant,
        since,
    }
}

/// Older kernels pass over the parameter.
fn dropped(tree: Tree, number: [u32; 2]) -> Tree {
    let tree = tree.line("/proc/cmdline", "transparent_hugepage=always thp_anon=64K:always");
    let tree = thp(tree, "enabled", "[always] madvise never");
    match number >= [6, 12] {
        true => thp(tree, "hugepages-2048kB/enabled", OFF),
        false => tree,
    }
}

/// Built without lazy preemption as far as a release can be.
fn sessions(tree: Tree, number: [u32; 2], line: &str) -> Tree {
    let modes = match (number >= [7, 0], number >= [6, 13] && line == "preempt=lazy") {
        (true, _) => "full (lazy)",
        (_, true) => "none voluntary full (lazy)",
        _ => "none (voluntary) full",
    };
    let tree = tree.line("/sys/kernel/debug/sched/preempt", modes);
    let server = process(100, "postgres").arg("-D").arg("/data");
    let tree = server
        .area(shared(16 << 10, "/dev/zero (deleted)"))
        .on(tree.line("/proc/cmdline", line));
    (0..40).fold(tree, |tree, at| process(200 + at, "postgres").parent(100).on(tree))
}

fn advised(tree: Tree, stalls: u64) -> Tree {
    let tree = vmstat(tree, &[("compact_stall", stalls)]);
    let solver = process(20, "solver").area(anonymous(512).flags("rd wr mr mw me ac hg"));
    solver.on(thp(tree, "defrag", "always defer defer+madvise [madvise] never"))
}

fn ptes_none(tree: Tree, value: u64) -> Tree {
    let tree = thp(tree, "khugepaged/max_ptes_none", value);
    thp(tree, "hugepages-64kB/enabled", "[always] inherit madvise never")
}

/// Older kernels refuse the option.
fn accounted(tree: Tree, number: [u32; 2]) -> Tree {
    group(
        tree,
        if number >= [6, 7] {
            "rw,memory_hugetlb_accounting"
        } else {
            "rw"
        },
    )
}

fn group(tree: Tree, options: &str) -> Tree {
    let at = "/sys/fs/cgroup/db";
    let tree = pool(tree, "2048kB", 512, 400, 400);
    process(90, "db")
        .cgroup("/db")
        .area(hugetlb(1024, 2048).resident(100))
        .on(tree)
        .file(
            "/proc/self/mounts",
            format!("cgroup2 /sys/fs/cgroup cgroup2 {options} 0 0\n"),
        )
        .line(&format!("{at}/memory.max"), 1000_u64 << 20)
        .line(&format!("{at}/memory.current"), 300_u64 << 20)
}

fn large_pool(tree: Tree, pages: u64) -> Tree {
    meminfo(pool(tree, "2048kB", pages, 0, 0), &[("MemTotal", 512 << 20)])
}

fn guest(tree: Tree, option: &str) -> Tree {
    let qemu = process(113, "qemu-system-x86_64").arg("-object").arg(option);
    qemu.area(anonymous(1024)).on(tree)
}

#[test]
fn each_rule_fires_on_the_releases_that_it_is_for_and_is_silent_on_the_others() {
    let mut wrong = Vec::new();
    for release in RELEASES {
        for Row {
            rule,
            what,
            plant,
            since,
        } in ROWS
        {
            let expected = number(release) >= since;
            let verdict = explain(rule)
                .expect(rule)
                .judge(&evidence(plant(plain(release), number(release))));
            let is_right = match &verdict {
                Verdict::Found(_) => expected,
                Verdict::Clear => !expected,
                // Nothing was left out of these machines.
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{rule} ({what}) on {release}: {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Captured machines (`fixtures/kernels`), and the rules that find something there; all others of the eight find nothing.
const CAPTURED: [(&str, &[&str]); 16] = [
    // It refuses the option memory_hugetlb_accounting, passes over thp_anon=, and has no lazy preemption.
    ("debian-6.1-busy", &["A21"]),
    ("debian-6.1-sizes", &[]),
    ("debian-6.1-stalls", &["D05"]),
    // "Dynamic Preempt: unsupported mode: lazy".
    ("debian-6.12-busy-preempt-lazy", &["A21", "C10"]),
    ("debian-6.12-sizes", &["D22"]),
    ("debian-6.12-stalls", &["D05"]),
    // Lazy as it was built, without a word on the boot line.
    ("debian-6.18-busy", &["A21", "C10", "F06"]),
    ("debian-6.18-busy-preempt-none", &["A21", "C10"]),
    ("debian-6.18-stalls", &["D05"]),
    ("firecracker-6.18", &[]),
    // "Dynamic Preempt: unsupported mode: none".
    ("debian-7.0-busy-preempt-none", &["A21", "C10", "F06"]),
    ("debian-7.2-busy", &["A21", "C10", "D33", "F06"]),
    ("debian-7.2-sizes", &["D22"]),
    // 940 stalls are too few to report.
    ("debian-7.2-stalls", &[]),
    ("debian-7.3-busy", &["A21", "C10", "D33", "F06"]),
    ("debian-7.3-stalls", &["D05"]),
];

const RULES: [&str; 8] = ["A21", "C10", "D05", "D22", "D33", "F06", "G08", "I02"];

fn captured(name: &str) -> Tree {
    let path = format!("{}/../../fixtures/kernels/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).expect("a capture");
    Tree::parse(&path, &text).expect("an archive")
}

/// These guests have no configuration files.
fn configured(tree: Tree) -> Tree {
    tree.line("/etc/os-release", "ID=debian").dir("/etc/sysctl.d")
}

fn finds(rule: &str, tree: Tree) -> bool {
    matches!(verdict(rule, tree), Verdict::Found(_) | Verdict::Partly(..))
}

#[test]
fn on_captured_kernels_each_rule_fires_where_it_must_and_is_silent_elsewhere() {
    let mut wrong = Vec::new();
    for (name, fires) in CAPTURED {
        for rule in RULES {
            let expected = fires.contains(&rule);
            if finds(rule, captured(name)) != expected {
                wrong.push(format!("{rule} on {name}: {:?}", verdict(rule, captured(name))));
            }
            let is_without_processes = name.ends_with("-sizes") || name == "firecracker-6.18";
            match verdict(rule, configured(captured(name))) {
                Verdict::NotJudged(not) if is_without_processes && not.reason.contains("no process") => {}
                Verdict::Found(_) if expected => {}
                Verdict::Clear if !expected => {}
                other => wrong.push(format!("{rule} on {name} with /etc: {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What no guest shows: a guest of its own, and settings of a kernel to come.
#[test]
fn on_captured_kernels_what_is_planted_is_found_from_its_release_on() {
    for (name, _) in CAPTURED {
        let has_guest_memfd = !name.contains("-6.1-");
        let tree = guest(captured(name), "sev-snp-guest,id=sev0");
        assert_eq!(finds("G08", tree), has_guest_memfd, "{name}");
        let usual = guest(captured(name), "memory-backend-memfd,id=m,size=1G");
        assert!(!finds("G08", usual), "{name}");
        assert!(finds("I02", thp(captured(name), "anon_beside_full", 1)), "{name}");
    }
}

/// Where the file that shows it is not for this user, only a kernel that has nothing less is sure to be lazy.
#[test]
fn what_a_kernel_was_built_with_is_not_guessed() {
    let unread = |name: &str| captured(name).denied("/sys/kernel/debug/sched/preempt");
    not_judged("F06", configured(unread("debian-6.18-busy")), "sched/preempt");
    clear("F06", configured(unread("debian-6.18-busy-preempt-none")));
    clear("F06", configured(unread("debian-6.12-busy-preempt-lazy")));
    assert!(finds("F06", unread("debian-7.2-busy")));
    // What offers less says how.
    let fix = found("F06", captured("debian-6.18-busy")).fix.join("\n");
    assert!(fix.contains("echo none > /sys/kernel/debug/sched/preempt"), "{fix}");
    let fix = found("F06", captured("debian-7.2-busy")).fix.join("\n");
    assert!(!fix.contains("echo none"), "{fix}");
}
