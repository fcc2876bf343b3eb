//! Machines for the rules' tests: one that is in order, and a short way to say what is wrong with another.

mod processes;

use host::{Source, Tree};
use model::Bytes;
use model::findings::{Diagnosis, Finding, NotJudged, Severity};
use programs::Evidence;

use super::remedy::Ledger;
use super::rule::Rule;
use super::{explain, rules};

pub(super) use processes::*;

const MIB: u64 = 1 << 20;
const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// A machine that is in order: 16 GiB, one node, Linux 6.12, empty pools of 2M and 1G, THP on `madvise`, init alone.
pub(super) fn machine() -> Tree {
    let tree = Tree::new()
        .line("/hugewise/page_size", 4096)
        .file("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: pae pse pdpe1gb nx\n")
        .line("/proc/cmdline", "quiet")
        .line("/proc/uptime", "90000.00 100000.00")
        .line("/proc/sys/kernel/osrelease", "6.12.10")
        .line("/proc/sys/kernel/shmmax", "18446744073692774399")
        .line("/proc/sys/kernel/shmall", "18446744073692774399")
        .line("/proc/sys/vm/hugetlb_shm_group", 0)
        .file("/proc/buddyinfo", "Node 0, zone   Normal   10   10   10   10   10   10   10   10   10   10   3000\n")
        .file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        .file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n")
        .file("/proc/sysvipc/shm", "       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime        rss       swap\n")
        .line("/sys/fs/cgroup/cgroup.controllers", "cpu memory hugetlb")
        .line(&format!("{THP}/enabled"), "always [madvise] never")
        .line(&format!("{THP}/defrag"), "always defer defer+madvise [madvise] never")
        .line(&format!("{THP}/shmem_enabled"), "always within_size [advise] never deny force")
        .line(&format!("{THP}/hpage_pmd_size"), 2 * MIB)
        .line(&format!("{THP}/khugepaged/max_ptes_none"), 0)
        .line(&format!("{THP}/khugepaged/pages_to_scan"), 4096)
        .line(&format!("{THP}/khugepaged/scan_sleep_millisecs"), 10000)
        .line("/etc/os-release", "ID=debian")
        .line("/etc/passwd", "root:x:0:0:root:/root:/bin/bash")
        .line("/etc/group", "root:x:0:")
        .dir("/etc/sysctl.d");
    let tree = meminfo(vmstat(tree, &[]), &[]);
    init(pool(pool(tree, "2048kB", 0, 0, 0), "1048576kB", 0, 0, 0))
}

fn init(tree: Tree) -> Tree {
    process(1, "systemd").cgroup("/init.scope").on(tree)
}

/// The usual lines, some of them with other values.
fn lines_with(usual: &[(&str, u64)], own: &[(&str, u64)], line: fn(&str, u64) -> String) -> String {
    let value = |name: &str| own.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let lines = usual
        .iter()
        .map(|(name, usual)| line(name, value(name).unwrap_or(*usual)));
    lines.collect()
}

/// With these lines of meminfo, in KiB, in place of the usual ones.
pub(super) fn meminfo(tree: Tree, lines: &[(&str, u64)]) -> Tree {
    let usual = [
        ("MemTotal", 16 << 20),
        ("MemFree", 8 << 20),
        ("MemAvailable", 12 << 20),
        ("Shmem", 4096),
        ("SwapCached", 0),
        ("AnonPages", 4096),
        ("Active(anon)", 0),
        ("Inactive(anon)", 8192),
        ("PageTables", 20480),
        ("AnonHugePages", 0),
        ("ShmemHugePages", 0),
        ("Hugepagesize", 2048),
    ];
    let text = lines_with(&usual, lines, |name, value| format!("{name}: {value} kB\n"));
    tree.file("/proc/meminfo", text)
}

/// With these counters of vmstat in place of the usual ones, which are calm.
pub(super) fn vmstat(tree: Tree, lines: &[(&str, u64)]) -> Tree {
    let usual = [
        ("thp_fault_alloc", 100_000),
        ("thp_fault_fallback", 100),
        ("thp_fault_fallback_charge", 0),
        ("thp_collapse_alloc", 100),
        ("thp_collapse_alloc_failed", 1),
        ("thp_underused_split_page", 0),
        ("thp_deferred_split_page", 10),
        ("compact_stall", 3),
        ("compact_fail", 1),
        ("allocstall_normal", 0),
        ("htlb_buddy_alloc_fail", 0),
        ("nr_anon_transparent_hugepages", 1),
        ("nr_file_pmdmapped", 0),
        ("nr_shmem_pmdmapped", 0),
        ("numa_pte_updates", 0),
        ("numa_hint_faults", 0),
        ("numa_pages_migrated", 0),
        ("zone_reclaim_success", 0),
        ("zone_reclaim_failed", 0),
    ];
    let text = lines_with(&usual, lines, |name, value| format!("{name} {value}\n"));
    tree.file("/proc/vmstat", text)
}

/// With a pool on node 0: its pages, those free, those reserved.
pub(super) fn pool(tree: Tree, size: &str, nr: u64, free: u64, reserved: u64) -> Tree {
    let at = format!("/sys/kernel/mm/hugepages/hugepages-{size}");
    let tree = tree
        .line(&format!("{at}/nr_hugepages"), nr)
        .line(&format!("{at}/free_hugepages"), free)
        .line(&format!("{at}/resv_hugepages"), reserved)
        .line(&format!("{at}/surplus_hugepages"), 0)
        .line(&format!("{at}/nr_overcommit_hugepages"), 0);
    node_pool(tree, 0, size, nr, free)
}

/// With a node's part of a pool.
pub(super) fn node_pool(tree: Tree, node: u32, size: &str, nr: u64, free: u64) -> Tree {
    let at = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{size}");
    tree.line(&format!("{at}/nr_hugepages"), nr)
        .line(&format!("{at}/free_hugepages"), free)
        .line(&format!("{at}/surplus_hugepages"), 0)
}

/// With a pool's other setting.
pub(super) fn pool_line(tree: Tree, size: &str, name: &str, value: u64) -> Tree {
    tree.line(&format!("/sys/kernel/mm/hugepages/hugepages-{size}/{name}"), value)
}

/// With a THP setting, such as `always [madvise] never`.
pub(super) fn thp(tree: Tree, name: &str, value: impl std::fmt::Display) -> Tree {
    tree.line(&format!("{THP}/{name}"), value)
}

pub(super) fn evidence(tree: Tree) -> Evidence {
    Evidence::gather(&Source::from_tree("test", tree))
}

/// What a rule says about a machine.
pub(super) fn verdict(id: &str, tree: Tree) -> Verdict {
    explain(id).expect(id).judge(&evidence(tree))
}

/// What came out of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It found something, once or several times.
    Found(Vec<Finding>),
    /// It was applied, and found nothing.
    Clear,
    /// It was applied in part: what it found there, and what could not be read.
    Partly(Vec<Finding>, NotJudged),
    /// Something could not be read, and without it there is no answer.
    NotJudged(NotJudged),
}

impl Rule {
    /// Applies the rule alone.
    pub(super) fn judge(&self, evidence: &Evidence) -> Verdict {
        let (mut ledger, mut diagnosis) = (Ledger::of(evidence), Diagnosis::default());
        let found = ledger.settle_all(self.draft(evidence, &mut diagnosis));
        match (diagnosis.partly.pop(), diagnosis.not_judged.pop()) {
            (Some(not), _) => Verdict::Partly(found, not),
            (None, Some(not)) => Verdict::NotJudged(not),
            (None, None) if found.is_empty() => Verdict::Clear,
            (None, None) => Verdict::Found(found),
        }
    }
}

/// The rule finds something here; gives the first of it.
#[track_caller]
pub(super) fn found(id: &str, tree: Tree) -> Finding {
    match verdict(id, tree) {
        Verdict::Found(findings) | Verdict::Partly(findings, _) => {
            let first = findings.into_iter().next().expect("a finding");
            assert!(
                !first.evidence.is_empty() && !first.fix.is_empty() && !first.consequence.is_empty(),
                "{first:?}"
            );
            first
        }
        other => panic!("{id}: {other:?}"),
    }
}

/// The rule looks here and finds nothing.
#[track_caller]
pub(super) fn clear(id: &str, tree: Tree) {
    assert_eq!(verdict(id, tree), Verdict::Clear, "{id}");
}

/// The rule cannot look at all of it, and finds nothing in the rest.
#[track_caller]
pub(super) fn partly(id: &str, tree: Tree, why: &str) {
    match verdict(id, tree) {
        Verdict::Partly(found, not) => assert!(found.is_empty() && not.reason.contains(why), "{id}: {found:?} {not:?}"),
        other => panic!("{id}: {other:?}"),
    }
}

/// The rule cannot be applied here, and reports why.
#[track_caller]
pub(super) fn not_judged(id: &str, tree: Tree, why: &str) {
    match verdict(id, tree) {
        Verdict::NotJudged(not_judged) => assert!(not_judged.reason.contains(why), "{id}: {}", not_judged.reason),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn the_machine_that_is_in_order_is() {
    let evidence = evidence(machine());
    for rule in rules() {
        if let Verdict::Found(findings) = rule.judge(&evidence) {
            let worst = findings.iter().map(|finding| finding.severity).max();
            assert!(worst < Some(Severity::Warning), "{findings:#?}");
        }
    }
    assert_eq!(evidence.snapshot.memory.get("MemTotal").known(), Some(&Bytes::gib(16)));
}
