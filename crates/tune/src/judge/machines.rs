//! Machines for the rules' tests: one that is in order, and a short way to say what is wrong with another.

use std::fmt::Write as _;

use host::{Evidence, Source, Tree};
use model::Bytes;
use model::findings::{Finding, Severity};

use super::rule::Verdict;
use super::{explain, rules};

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

/// With these lines of meminfo, in KiB, in place of the usual ones.
pub(super) fn meminfo(tree: Tree, lines: &[(&str, u64)]) -> Tree {
    let usual = [
        ("MemTotal", 16 << 20),
        ("MemFree", 8 << 20),
        ("MemAvailable", 12 << 20),
        ("Shmem", 4096),
        ("PageTables", 20480),
        ("AnonHugePages", 0),
        ("ShmemHugePages", 0),
        ("Hugepagesize", 2048),
    ];
    let value = |name: &str, usual: u64| {
        lines
            .iter()
            .find(|(own, _)| *own == name)
            .map_or(usual, |(_, own)| *own)
    };
    let text = usual.iter().fold(String::new(), |mut text, (name, usual)| {
        writeln!(text, "{name}: {} kB", value(name, *usual)).expect("a String");
        text
    });
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
        ("compact_stall", 3),
        ("compact_fail", 1),
        ("allocstall_normal", 0),
        ("htlb_buddy_alloc_fail", 0),
        ("nr_anon_transparent_hugepages", 1),
        ("nr_file_pmdmapped", 0),
        ("nr_shmem_pmdmapped", 0),
    ];
    let value = |name: &str, usual: u64| {
        lines
            .iter()
            .find(|(own, _)| *own == name)
            .map_or(usual, |(_, own)| *own)
    };
    let text = usual.iter().fold(String::new(), |mut text, (name, usual)| {
        writeln!(text, "{name} {}", value(name, *usual)).expect("a String");
        text
    });
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

/// With a setting of transparent pages, such as `always [madvise] never`.
pub(super) fn thp(tree: Tree, name: &str, value: impl std::fmt::Display) -> Tree {
    tree.line(&format!("{THP}/{name}"), value)
}

/// A process to put on a machine.
pub(super) struct Process {
    pid: u32,
    name: String,
    parent: u32,
    uid: u32,
    groups: String,
    threads: u64,
    thp: bool,
    locks: bool,
    nodes: String,
    memlock: String,
    cgroup: String,
    arguments: Vec<String>,
    environment: Vec<String>,
    page_tables: u64,
    areas: Vec<Mapped>,
}

/// One of its mappings; amounts in MiB.
pub(super) struct Mapped {
    name: String,
    perms: &'static str,
    size: u64,
    base: u64,
    thp: u64,
    hugetlb: u64,
    page_kib: u64,
    eligible: bool,
    flags: &'static str,
    offset: u64,
    start: Option<u64>,
}

/// Private anonymous memory of so many MiB, all there on base pages.
pub(super) fn anonymous(size: u64) -> Mapped {
    Mapped {
        name: String::new(),
        perms: "rw-p",
        size,
        base: size,
        thp: 0,
        hugetlb: 0,
        page_kib: 4,
        eligible: true,
        flags: "rd wr mr mw me ac",
        offset: 0,
        start: None,
    }
}

/// Shared memory of so many MiB, all there on base pages.
pub(super) fn shared(size: u64, name: &str) -> Mapped {
    anonymous(size).named(name).perms("rw-s").flags("rd wr sh mr mw me ms")
}

/// hugetlb memory of so many MiB, all there.
pub(super) fn hugetlb(size: u64, page_kib: u64) -> Mapped {
    Mapped {
        base: 0,
        hugetlb: size,
        page_kib,
        eligible: false,
        ..anonymous(size)
    }
    .flags("rd wr mr mw me ac ht")
    .named("/anon_hugepage (deleted)")
}

impl Mapped {
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    pub(super) fn perms(mut self, perms: &'static str) -> Self {
        self.perms = perms;
        self
    }

    pub(super) fn flags(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }

    /// So much of it on transparent pages.
    pub(super) fn thp(mut self, mib: u64) -> Self {
        (self.thp, self.base) = (mib, self.base.saturating_sub(mib));
        self
    }

    /// Only so much of it there.
    pub(super) fn resident(mut self, mib: u64) -> Self {
        if self.hugetlb > 0 {
            self.hugetlb = mib;
        } else {
            self.base = mib;
        }
        self
    }

    pub(super) fn not_there(mut self) -> Self {
        (self.base, self.thp, self.hugetlb) = (0, 0, 0);
        self
    }

    pub(super) fn not_eligible(mut self) -> Self {
        self.eligible = false;
        self
    }

    pub(super) fn at(mut self, start: u64, offset: u64) -> Self {
        (self.start, self.offset) = (Some(start), offset);
        self
    }
}

pub(super) fn process(pid: u32, name: &str) -> Process {
    Process {
        pid,
        name: name.to_owned(),
        parent: u32::from(pid != 1),
        uid: 1000,
        groups: "1000".to_owned(),
        threads: 4,
        thp: true,
        locks: false,
        nodes: "0".to_owned(),
        memlock: "8388608".to_owned(),
        cgroup: "/user.slice/user-1000.slice/session-1.scope".to_owned(),
        arguments: vec![format!("/usr/bin/{name}")],
        environment: vec!["HOME=/root".to_owned()],
        page_tables: 100,
        areas: vec![],
    }
}

impl Process {
    pub(super) fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub(super) fn env(mut self, entry: &str) -> Self {
        self.environment.push(entry.to_owned());
        self
    }

    pub(super) fn area(mut self, area: Mapped) -> Self {
        self.areas.push(area);
        self
    }

    pub(super) fn parent(mut self, parent: u32) -> Self {
        self.parent = parent;
        self
    }

    pub(super) fn groups(mut self, groups: &str) -> Self {
        groups.clone_into(&mut self.groups);
        self
    }

    pub(super) fn threads(mut self, threads: u64) -> Self {
        self.threads = threads;
        self
    }

    pub(super) fn thp_off(mut self) -> Self {
        self.thp = false;
        self
    }

    pub(super) fn locks(mut self) -> Self {
        self.locks = true;
        self
    }

    pub(super) fn nodes(mut self, nodes: &str) -> Self {
        nodes.clone_into(&mut self.nodes);
        self
    }

    pub(super) fn memlock(mut self, limit: &str) -> Self {
        limit.clone_into(&mut self.memlock);
        self
    }

    pub(super) fn cgroup(mut self, path: &str) -> Self {
        path.clone_into(&mut self.cgroup);
        self
    }

    fn sum(&self, of: fn(&Mapped) -> u64) -> u64 {
        self.areas.iter().map(of).sum::<u64>() * 1024
    }

    /// Puts it on a machine.
    pub(super) fn on(&self, tree: Tree) -> Tree {
        let at = |file: &str| format!("/proc/{}/{file}", self.pid);
        let zero_ended = |words: &[String]| words.iter().map(|word| format!("{word}\0")).collect::<String>();
        let (before_start, after) = ("0 ".repeat(18), "0 0");
        tree.file(&at("status"), self.status())
            .file(&at("cmdline"), zero_ended(&self.arguments))
            .file(&at("environ"), zero_ended(&self.environment))
            .file(&at("smaps"), self.smaps())
            .file(&at("smaps_rollup"), self.rollup())
            .file(
                &at("limits"),
                format!("Max locked memory         {0}              {0} bytes\n", self.memlock),
            )
            .line(&at("cgroup"), format!("0::{}", self.cgroup))
            .line(
                &at("stat"),
                format!("{} ({}) S {before_start}5000 {after}", self.pid, self.name),
            )
            .file(&at("mounts"), "proc /proc proc rw 0 0\n")
    }

    fn status(&self) -> String {
        let (anonymous, shared): (Vec<&Mapped>, Vec<&Mapped>) =
            self.areas.iter().partition(|area| area.perms.ends_with('p'));
        let sum = |areas: &[&Mapped]| areas.iter().map(|area| area.base + area.thp).sum::<u64>() * 1024;
        let ids = [self.uid; 4].map(|id| id.to_string()).join("\t");
        let mut text = String::new();
        for (key, value) in [
            ("Name", self.name.clone()),
            ("PPid", self.parent.to_string()),
            ("Uid", ids.clone()),
            ("Gid", ids),
            ("Groups", self.groups.clone()),
            ("VmRSS", format!("{} kB", sum(&anonymous) + sum(&shared) + 4096)),
            ("RssAnon", format!("{} kB", sum(&anonymous) + 4096)),
            ("RssFile", "0 kB".to_owned()),
            ("RssShmem", format!("{} kB", sum(&shared))),
            ("VmPTE", format!("{} kB", self.page_tables)),
            ("HugetlbPages", format!("{} kB", self.sum(|area| area.hugetlb))),
            ("THP_enabled", u32::from(self.thp).to_string()),
            ("Threads", self.threads.to_string()),
            ("CapEff", format!("{:016x}", if self.locks { 1_u64 << 14 } else { 0 })),
            ("Mems_allowed_list", self.nodes.clone()),
        ] {
            writeln!(text, "{key}:\t{value}").expect("a String");
        }
        text
    }

    fn rollup(&self) -> String {
        let rss = self.sum(|area| area.base + area.thp) + 4096;
        let (thp, hugetlb) = (self.sum(|area| area.thp), self.sum(|area| area.hugetlb));
        format!(
            "400000-7fff00000000 ---p 00000000 00:00 0 [rollup]\nRss: {rss} kB\nAnonHugePages: {thp} kB\nPrivate_Hugetlb: {hugetlb} kB\n"
        )
    }

    fn smaps(&self) -> String {
        let mut next = 0x7f00_0000_0000_u64;
        let mut text = String::new();
        for (number, area) in self.areas.iter().enumerate() {
            let start = area.start.unwrap_or(next);
            let end = start + area.size * MIB;
            next = (end + 4 * MIB).next_multiple_of(2 * MIB);
            let inode = if area.name.starts_with('/') { 100 + number } else { 0 };
            let private = area.perms.ends_with('p');
            writeln!(
                text,
                "{start:x}-{end:x} {} {:08x} 00:01 {inode} {}",
                area.perms, area.offset, area.name
            )
            .expect("a String");
            for (key, kib) in [
                ("KernelPageSize", area.page_kib),
                ("Rss", (area.base + area.thp) * 1024),
                ("AnonHugePages", if private { area.thp * 1024 } else { 0 }),
                ("ShmemPmdMapped", if private { 0 } else { area.thp * 1024 }),
                ("Shared_Hugetlb", if private { 0 } else { area.hugetlb * 1024 }),
                ("Private_Hugetlb", if private { area.hugetlb * 1024 } else { 0 }),
            ] {
                writeln!(text, "{key}: {kib} kB").expect("a String");
            }
            writeln!(
                text,
                "THPeligible: {}\nVmFlags: {} ",
                u32::from(area.eligible),
                area.flags
            )
            .expect("a String");
        }
        text
    }
}

/// The evidence of a machine.
pub(super) fn evidence(tree: Tree) -> Evidence {
    Evidence::gather(&Source::from_tree("test", tree))
}

/// What a rule says about a machine.
pub(super) fn verdict(id: &str, tree: Tree) -> Verdict {
    explain(id).expect(id).judge(&evidence(tree))
}

/// The rule finds something here; gives the first of it.
#[track_caller]
pub(super) fn found(id: &str, tree: Tree) -> Finding {
    match verdict(id, tree) {
        Verdict::Found(findings) => {
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

/// The rule cannot tell here, and says why.
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
