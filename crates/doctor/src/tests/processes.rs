//! Processes of invented machines: their status, arguments, limits and mappings, as /proc shows them.

use std::fmt::Write as _;

use host::Tree;

use super::MIB;

/// A process to put on a machine.
pub(crate) struct Process {
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
    pinned: u64,
    locked: u64,
    cgroup: String,
    arguments: Vec<String>,
    environment: Vec<String>,
    page_tables: u64,
    areas: Vec<Mapped>,
}

/// One of its mappings; amounts in MiB.
pub(crate) struct Mapped {
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
pub(crate) fn anonymous(size: u64) -> Mapped {
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
pub(crate) fn shared(size: u64, name: &str) -> Mapped {
    anonymous(size).named(name).perms("rw-s").flags("rd wr sh mr mw me ms")
}

/// hugetlb memory of so many MiB, all there.
pub(crate) fn hugetlb(size: u64, page_kib: u64) -> Mapped {
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
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    pub(crate) fn perms(mut self, perms: &'static str) -> Self {
        self.perms = perms;
        self
    }

    pub(crate) fn flags(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }

    /// So much of it backed by THP.
    pub(crate) fn thp(mut self, mib: u64) -> Self {
        (self.thp, self.base) = (mib, self.base.saturating_sub(mib));
        self
    }

    /// Only so much of it there.
    pub(crate) fn resident(mut self, mib: u64) -> Self {
        if self.hugetlb > 0 {
            self.hugetlb = mib;
        } else {
            self.base = mib;
        }
        self
    }

    pub(crate) fn not_there(mut self) -> Self {
        (self.base, self.thp, self.hugetlb) = (0, 0, 0);
        self
    }

    pub(crate) fn not_eligible(mut self) -> Self {
        self.eligible = false;
        self
    }

    pub(crate) fn at(mut self, start: u64, offset: u64) -> Self {
        (self.start, self.offset) = (Some(start), offset);
        self
    }
}

pub(crate) fn process(pid: u32, name: &str) -> Process {
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
        pinned: 0,
        locked: 0,
        cgroup: "/user.slice/user-1000.slice/session-1.scope".to_owned(),
        arguments: vec![format!("/usr/bin/{name}")],
        environment: vec!["HOME=/root".to_owned()],
        page_tables: 100,
        areas: vec![],
    }
}

impl Process {
    /// Started by this path.
    pub(crate) fn path(mut self, path: &str) -> Self {
        self.arguments[0] = path.to_owned();
        self
    }

    pub(crate) fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub(crate) fn env(mut self, entry: &str) -> Self {
        self.environment.push(entry.to_owned());
        self
    }

    pub(crate) fn area(mut self, area: Mapped) -> Self {
        self.areas.push(area);
        self
    }

    pub(crate) fn parent(mut self, parent: u32) -> Self {
        self.parent = parent;
        self
    }

    pub(crate) fn groups(mut self, groups: &str) -> Self {
        groups.clone_into(&mut self.groups);
        self
    }

    pub(crate) fn threads(mut self, threads: u64) -> Self {
        self.threads = threads;
        self
    }

    pub(crate) fn thp_off(mut self) -> Self {
        self.thp = false;
        self
    }

    pub(crate) fn locks(mut self) -> Self {
        self.locks = true;
        self
    }

    pub(crate) fn nodes(mut self, nodes: &str) -> Self {
        nodes.clone_into(&mut self.nodes);
        self
    }

    pub(crate) fn memlock(mut self, limit: &str) -> Self {
        limit.clone_into(&mut self.memlock);
        self
    }

    /// So many MiB of it pinned by a driver.
    pub(crate) fn pinned(mut self, mib: u64) -> Self {
        self.pinned = mib;
        self
    }

    /// So many MiB of it locked.
    pub(crate) fn locked(mut self, mib: u64) -> Self {
        self.locked = mib;
        self
    }

    pub(crate) fn cgroup(mut self, path: &str) -> Self {
        path.clone_into(&mut self.cgroup);
        self
    }

    fn sum(&self, of: fn(&Mapped) -> u64) -> u64 {
        self.areas.iter().map(of).sum::<u64>() * 1024
    }

    /// Puts it on a machine.
    pub(crate) fn on(&self, tree: Tree) -> Tree {
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
            ("VmLck", format!("{} kB", self.locked * 1024)),
            ("VmPin", format!("{} kB", self.pinned * 1024)),
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
            let first = self.areas.iter().position(|other| other.name == area.name);
            let inode = if area.name.starts_with('/') {
                100 + first.unwrap_or(number)
            } else {
                0
            };
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
