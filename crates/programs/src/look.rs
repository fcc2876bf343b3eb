//! One pass over all processes: cheap facts for each, a closer look where it can matter.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::process::ProcessPages;
use model::{Bytes, Cause, PageKind, Reading, Unread};

use super::facts::{self, Own, Status};
use super::{Area, Details, Kind, Program, areas, glibc, jvm, locks, mongo};
use super::{Groups, Limit};
use crate::config::{Unit, unit};
use host::processes::{self, Limits};
use host::snapshot::Mount;
use host::snapshot::thp::THP;
use host::{Snapshot, Source, snapshot, spread};

/// Processes from this size on are looked into, whatever they are.
const LARGE: Bytes = Bytes::mib(64);
/// A lower limit of locked memory has no room for the buffers that programs of RDMA register.
pub const REGISTERED: Bytes = Bytes::mib(64);
/// What such programs have mapped.
pub const RDMA: &str = "/dev/infiniband/uverbs";
/// A live process with more page tables than this is not walked: its own mappings would wait for it. It maps 4 GiB of
/// base pages: 60 ms of CPU on a Zen 4 guest.
pub(crate) const MOST_TABLES: Bytes = Bytes::mib(8);
/// Counting bytes behind mappings stops after this long; what is left keeps its mappings without bytes.
const BUDGET: Duration = Duration::from_millis(200);

/// Every process with memory of its own.
///
/// Absent if the source holds no process at all, as a capture without them does.
pub fn programs(source: &Source, snapshot: &Snapshot) -> Reading<Vec<Program>> {
    candidates(source).map(|candidates| look(source, snapshot, candidates))
}

/// Every process, and which of them deserve a closer look.
pub(crate) struct Candidates {
    /// All, without details.
    pub(crate) programs: Vec<Program>,
    /// Places in `programs`, the largest first.
    pub(crate) closer: Vec<usize>,
}

/// The cheap half of [`programs`]: nothing but status, arguments and environment is read of each.
pub(crate) fn candidates(source: &Source) -> Reading<Candidates> {
    processes::list(source).map(|rows| survey(source, &rows))
}

fn survey(source: &Source, rows: &[ProcessPages]) -> Candidates {
    let programs: Vec<Program> = spread::over(source, rows, |row| cheap(source, row.clone()));
    let kinds: BTreeMap<u32, Kind> = programs
        .iter()
        .filter_map(|program| Some((program.pid(), (*program.kind.known()?)?)))
        .collect();
    // On arm64 the C library's version decides even for small ones.
    let is_arm = source
        .text("/proc/cpuinfo")
        .known()
        .is_some_and(|text| text.contains("CPU implementer"));
    // A capture has nothing of the devices.
    let has_rdma = !source.is_live() || source.list("/sys/class/infiniband").known().is_some();
    let mut closer: Vec<usize> = (0..programs.len())
        .filter(|&at| {
            let program = &programs[at];
            matters(program, &kinds)
                || (is_arm && has_thp(program))
                || (has_rdma && may_fail_to_register(source, program))
        })
        .collect();
    closer.sort_by_key(|&at| Reverse(programs[at].pages.resident.known().map_or(0, |bytes| bytes.0)));
    Candidates { programs, closer }
}

fn look(source: &Source, snapshot: &Snapshot, candidates: Candidates) -> Vec<Program> {
    let Candidates { mut programs, closer } = candidates;
    let mut looker = Looker::new(source, snapshot);
    for at in closer {
        looker.look_into(&mut programs[at]);
    }
    programs.retain(|program| !has_ended(source, program));
    programs
}

/// Gives one program its details.
pub(super) fn into(source: &Source, snapshot: &Snapshot, program: &mut Program) {
    Looker::new(source, snapshot).look_into(program);
}

/// Did it end while it was looked at? Then it is no program of which something could not be read.
fn has_ended(source: &Source, program: &Program) -> bool {
    let lacks = |of: &Details| of.areas.is_absent() || of.cgroup.is_absent() || of.memlock.is_absent();
    let missing = program.arguments.is_absent()
        || program.tunables.is_absent()
        || program.parent.is_absent()
        || program.details.as_ref().is_some_and(lacks);
    source.is_live() && missing && processes::one(source, program.pid()).is_absent()
}

fn cheap(source: &Source, pages: ProcessPages) -> Program {
    let pid = pages.pid;
    let status = Status::read(source, pid);
    let parent = status.number("PPid").map(|pid| u32::try_from(pid).unwrap_or(0));
    let arguments = facts::arguments(source, pid);
    let kind = match &parent {
        Err(why) if pages.name.is_empty() => Reading::Unread(why.clone()),
        _ => Reading::Known(Kind::of(&pages.name, arguments.known().map_or(&[], Vec::as_slice))),
    };
    Program {
        kind,
        arguments,
        tunables: facts::tunables(source, pid),
        parent: parent.into(),
        groups: status.groups().into(),
        capabilities: status.capabilities().into(),
        pinned: status.size("VmPin").into(),
        locked: status.size("VmLck").into(),
        nodes: status.list("Mems_allowed_list", "a list of nodes").into(),
        cpus: status.list("Cpus_allowed_list", "a list of CPUs").into(),
        threads: status.number("Threads").into(),
        pages,
        details: None,
    }
}

/// One that could not register its buffers at start has stayed small.
fn may_fail_to_register(source: &Source, program: &Program) -> bool {
    let limit = facts::memlock(source, program.pid());
    let is_low = limit.known().is_some_and(|limit| *limit < Limit::Bytes(REGISTERED.0));
    let has_device = || {
        let areas = areas::named(source, program.pid());
        let mut areas = areas.known().into_iter().flatten();
        areas.any(|area| area.name.starts_with(RDMA))
    };
    is_low && program.may_lock() == Ok(false) && has_device()
}

fn has_thp(program: &Program) -> bool {
    let backing = program.pages.backing.known();
    backing.is_some_and(|backing| backing.of(PageKind::Thp).0 > 0)
}

/// Is a closer look due? The many processes of one database share what decides: the first of them stands for all.
fn matters(program: &Program, kinds: &BTreeMap<u32, Kind>) -> bool {
    let kind = program.kind.known().copied().flatten();
    let parent = program.parent.known().and_then(|parent| kinds.get(parent)).copied();
    match kind {
        Some(Kind::Postgres) => parent != Some(Kind::Postgres),
        Some(Kind::Oracle) => {
            let first = program
                .arguments
                .known()
                .and_then(|all| all.first())
                .map_or("", String::as_str);
            [&program.pages.name, first]
                .iter()
                .any(|name| name.starts_with("ora_pmon"))
        }
        Some(_) => true,
        None => {
            let at_least = |bytes: &Reading<Bytes>, least: Bytes| bytes.known().is_none_or(|bytes| *bytes >= least);
            at_least(&program.pages.resident, LARGE)
                || program.pages.hugetlb.known().is_some_and(|bytes| bytes.0 > 0)
                || program.pages.thp_enabled.known() == Some(&false)
                || program.tunables.known().is_some_and(|tunables| !tunables.is_empty())
        }
    }
}

/// What a pass keeps between processes.
struct Looker<'a> {
    source: &'a Source,
    snapshot: &'a Snapshot,
    sizes: Vec<Bytes>,
    units: BTreeMap<String, Reading<Unit>>,
    glibc: BTreeMap<(Arc<str>, u64), (u32, u32)>,
    began: Instant,
}

impl<'a> Looker<'a> {
    fn new(source: &'a Source, snapshot: &'a Snapshot) -> Self {
        Self {
            source,
            snapshot,
            sizes: snapshot
                .pools
                .known()
                .into_iter()
                .flatten()
                .map(|pool| pool.size)
                .collect(),
            units: BTreeMap::new(),
            glibc: BTreeMap::new(),
            began: Instant::now(),
        }
    }

    /// Gives a program its details, and its kind if those show it.
    fn look_into(&mut self, program: &mut Program) {
        let (kind, details) = self.details(program);
        if kind.is_some() {
            program.kind = Reading::Known(kind);
        }
        program.details = Some(details);
    }

    fn details(&mut self, program: &Program) -> (Option<Kind>, Details) {
        let (source, pid) = (self.source, program.pid());
        let areas = self.areas(program);
        let mapped = || Kind::of_areas(areas.known()?);
        let kind = program.kind.known().copied().flatten().or_else(mapped);
        let cgroup = Groups::read(source, &self.snapshot.cgroup, &self.sizes, pid);
        let is_container = cgroup.known().is_some_and(|groups| groups.is_container);
        let service = cgroup.known().and_then(|groups| groups.service.clone());
        let jvm =
            (kind == Some(Kind::Jvm)).then(|| jvm::read(source, program, areas.known().map(Vec::as_slice)).into());
        let server = kind.and_then(Kind::server);
        let own = server.map_or_else(Own::default, |server| (server.own)(source, program, is_container));
        let mounts = snapshot::mounts::all_of(source, &program.file("mounts"));
        let details = Details {
            hugetlb_nodes: match kind {
                Some(Kind::Dpdk) => processes::hugetlb_nodes(source, pid, Limits::default()),
                _ => Reading::absent("the nodes of its pages decide nothing here"),
            },
            memlock: facts::memlock(source, pid),
            lock: match own.lock {
                Some(lock) => Reading::Known(Some(lock)),
                None => locks::of_program(source, program, is_container),
            },
            unit: service.map(|name| self.unit(name)),
            started: facts::started(source, pid),
            jvm,
            glibc: self.glibc(program, &areas),
            thp_files: mounts.as_ref().and_then(|mounts| sees_thp(mounts)),
            hugetlb_mounts: mounts.map(|mounts| mounts.into_iter().filter(|mount| mount.kind == "hugetlbfs").collect()),
            version: match kind {
                Some(Kind::Mongo) => mongo::version(source, program, areas.known().map_or(&[][..], Vec::as_slice)),
                _ => Reading::absent("the program's version decides nothing here"),
            },
            setting: own.setting,
            settings: own.settings,
            innodb: own.innodb,
            option_file: own.option_file,
            refused: own.refused,
            areas,
            cgroup,
        };
        (kind, details)
    }

    /// With bytes where that is cheap. Reading a capture is always cheap.
    fn areas(&self, program: &Program) -> Reading<Vec<Area>> {
        let affordable = || {
            let tables = program.pages.page_tables.known();
            tables.is_some_and(|&tables| tables <= MOST_TABLES) && self.began.elapsed() < BUDGET
        };
        let named = || areas::named(self.source, program.pid());
        if self.source.is_live() && !affordable() {
            return named();
        }
        match areas::counted(self.source, program.pid()) {
            counted if counted.is_absent() && !self.source.is_live() => {
                Some(named()).filter(|named| named.known().is_some()).unwrap_or(counted)
            }
            counted => counted,
        }
    }

    fn unit(&mut self, name: String) -> Reading<Unit> {
        let source = self.source;
        self.units
            .entry(name)
            .or_insert_with_key(|name| unit::read(source, name))
            .clone()
    }

    /// Needed for tunables, which came and went with versions, and on arm64, where the default changed. Old versions are in the file's name.
    fn glibc(&mut self, program: &Program, areas: &Reading<Vec<Area>>) -> Reading<(u32, u32)> {
        let has_tunables = program.tunables.known().is_some_and(|tunables| !tunables.is_empty());
        let vendor = self.snapshot.cpu.vendor.known();
        let is_arm = vendor.is_some_and(|vendor| vendor.starts_with("0x"));
        let library = areas.known().and_then(|areas| glibc::mapped(areas));
        let is_old = library.is_some_and(|library| library.name.contains("/libc-2."));
        if !has_tunables && !is_arm && !is_old {
            return Reading::absent("the version of glibc decides nothing here");
        }
        let (source, pid) = (self.source, program.pid());
        let file = library.map(|area| (area.device.clone(), area.inode));
        let file = file.filter(|(_, inode)| *inode != 0);
        if let Some(known) = file.as_ref().and_then(|file| self.glibc.get(file)) {
            return Reading::Known(*known);
        }
        let version = areas
            .as_ref()
            .and_then(|areas| glibc::version(source, pid, areas).into_result());
        // Only what was read is kept: the next process may live longer than this one.
        self.glibc.extend(file.zip(version.known().copied()));
        version
    }
}

/// Does a table of mounts show the directory of THP? One without a root is a part of a table.
fn sees_thp(mounts: &[Mount]) -> Result<bool, Unread> {
    let covers = |mount: &&Mount| {
        let target = mount.target.trim_end_matches('/');
        THP.strip_prefix(target)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if mounts.iter().all(|mount| mount.target != "/") {
        return Err(Unread::new(Cause::Absent, "mounts", "a capture has a part of them"));
    }
    // Of those above it the last one is on top.
    Ok(mounts.iter().rfind(covers).is_some_and(|mount| mount.kind == "sysfs"))
}
