//! The programs that a word on the command line means, each with all of its processes, their memory and its settings.

mod meant;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use host::processes::{self, Coverage, is_counted, taken_of_pool};
use model::process::Unseen;
use model::vms::Vm;
use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::{Area, Kind, Logs, Program, candidates, log, look, mysql, postgres, redis};
use crate::evidence::uptime;
use crate::vms;
use host::snapshot::MountTree;
use host::{Snapshot, Source};

/// Shared memory below this size is a library's scratch area, not a database's cache.
const LEAST_SHARED: Bytes = Bytes::mib(8);
/// Counting the mappings of a server's other processes stops after this long.
const FAMILY: Duration = Duration::from_millis(500);
/// By this variable of gperftools the heap is a file, which children may share: so many of them are looked into.
const HEAP_FILE: (&str, usize) = ("TCMALLOC_MEMFS_MALLOC_PATH", 8);

/// One program with all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The process that stands for it, such as PostgreSQL's postmaster, looked into.
    pub main: Program,
    /// Its other processes, such as PostgreSQL's sessions; those that may share a heap are looked into as well.
    pub others: Vec<Program>,
    /// The mappings of those, as far as they could be counted.
    pub family: Vec<Vec<Area>>,
    /// The process that was asked for by its PID, if another stands for its program.
    pub asked: Option<Program>,
    /// Its shared memory, largest first.
    pub shared: Vec<SharedMemory>,
    /// The virtual machine that it runs.
    pub vm: Option<Vm>,
    /// The mounts that it sees.
    pub mounts: MountTree,
    /// The directory that it works in, if that could be read.
    pub directory: Option<String>,
    /// Where it takes connections, of a server that says it.
    pub listens: Option<Listens>,
    /// What it wrote about huge pages in its logs, as far as they could be read.
    pub log: Logs,
}

/// Where a running server takes connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listens {
    /// TCP port; that of PostgreSQL is part of the socket's name, too.
    pub port: Option<u16>,
    /// Its socket, or of PostgreSQL the directory of it; `None` without one.
    pub socket: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SharedMemory {
    /// The mapping in the main process.
    pub area: Area,
    /// Bytes that exist, whichever process touched them; the rest of a hugetlb segment is reserved. Read from the segment's inode,
    /// which takes root.
    pub touched: Reading<Bytes>,
}

/// Why a word means no process.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Nothing goes by it.
    #[error(
        "{}{}",
        meant::nothing(word, unseen.is_none()),
        near.first().map_or_else(String::new, |_| format!("; running: {}", near.join(", ")))
    )]
    NotFound {
        word: String,
        /// Known programs that run.
        near: Vec<String>,
        /// Processes that may be it.
        unseen: Box<Unseen>,
    },
    /// Some run, and which of them it is could not be read.
    #[error("which of the running programs `{0}` is could not be read (run it with sudo)")]
    Hidden(String),
    /// It is empty, as a variable without a value is in a shell.
    #[error("the name of the program is empty (is a variable of the shell not set?)")]
    Empty,
    /// The list of processes could not be read.
    #[error(transparent)]
    Unread(#[from] Unread),
}

/// The programs that `word` means, the largest first.
///
/// # Errors
/// If there is none, or the processes cannot be listed.
pub fn targets(source: &Source, snapshot: &Snapshot, word: &str) -> Result<Vec<Target>, TargetError> {
    if word.trim().is_empty() {
        return Err(TargetError::Empty);
    }
    let all = candidates(source).into_result()?.programs;
    let not_found = || TargetError::NotFound {
        word: word.to_owned(),
        near: known(source, &all),
        unseen: Box::new(unseen(source, &all)),
    };
    // `postgres:port=5433` is one of several.
    let one = word
        .split_once(':')
        .filter(|(word, which)| Kind::of_word(word).is_some() && !which.is_empty());
    let meant = meant::programs(source, &all, one.map_or(word, |(kind, _)| kind));
    if meant.is_empty() {
        return Err(not_found());
    }
    let asked = word.parse::<u32>().ok();
    let families = meant::families(&meant);
    let looked_into = |(main, others): (&Program, Vec<&Program>)| {
        let asked = others.iter().find(|program| Some(program.pid()) == asked);
        let asked = asked.map(|program| (*program).clone());
        let others = others.into_iter().cloned().collect();
        Target {
            asked,
            ..looked_into(source, snapshot, main.clone(), others)
        }
    };
    let mut targets: Vec<Target> = families.into_iter().map(looked_into).collect();
    let Some((_, which)) = one else {
        return Ok(targets);
    };
    let is_hidden = targets.iter().any(|target| target.directory.is_none());
    targets.retain(|target| target.is_one(which));
    match targets.is_empty() {
        true if is_hidden => Err(TargetError::Hidden(word.to_owned())),
        true => Err(not_found()),
        false => Ok(targets),
    }
}

/// The mappings of other processes of a program, the largest first, while counting them takes little time: none of them is held up
/// for long, and a server may have thousands.
fn family(source: &Source, others: &[Program]) -> Vec<Vec<Area>> {
    let began = Instant::now();
    let mut others: Vec<&Program> = others.iter().collect();
    others.sort_by_key(|program| std::cmp::Reverse(program.pages.rss.known().map_or(0, |bytes| bytes.0)));
    let is_cheap = |program: &&&Program| {
        let tables = program.pages.page_tables.known();
        !source.is_live() || tables.is_some_and(|tables| *tables <= super::MOST_TABLES) && began.elapsed() < FAMILY
    };
    let counted = others.iter().take_while(|program| is_cheap(program));
    let areas = counted.filter_map(|program| super::areas::counted(source, program.pid()).into_result().ok());
    areas.collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningServer {
    pub pid: u32,
    /// Its shared memory, exactly as it asked the kernel for it.
    pub segment: Bytes,
    /// How long it has been running, if that could be read.
    pub age: Option<Duration>,
}

/// The running PostgreSQL server that reads this configuration file, if there is one.
pub fn running_server(source: &Source, file: &str) -> Option<RunningServer> {
    let servers = targets(source, &Snapshot::take(source), "postgres").ok()?;
    let server = servers
        .iter()
        .find(|server| server.configuration().as_deref() == Some(file))?;
    Some(RunningServer {
        pid: server.main.pid(),
        segment: server.shared.first()?.area.size(),
        age: age(source, &server.main),
    })
}

/// How long it has been running; `None` if that could not be read, or it was not looked into.
pub fn age(source: &Source, program: &Program) -> Option<Duration> {
    let started = program.details.as_ref()?.started.known()?;
    Duration::try_from_secs_f64(uptime(source).known()? - started).ok()
}

fn looked_into(source: &Source, snapshot: &Snapshot, mut main: Program, mut others: Vec<Program>) -> Target {
    look::into(source, snapshot, &mut main);
    let (variable, most) = HEAP_FILE;
    let has_file = |other: &&mut Program| other.tunables.known().is_some_and(|all| all.contains_key(variable));
    for other in others.iter_mut().filter(has_file).take(most) {
        look::into(source, snapshot, other);
    }
    let kind = main.kind.known().copied().flatten();
    let segments = main.areas().unwrap_or_default().iter();
    let mut shared: Vec<SharedMemory> = segments
        .filter(|area| area.is_shared_memory() && area.size() >= LEAST_SHARED)
        .map(|area| SharedMemory {
            touched: touched(source, main.pid(), area),
            area: area.clone(),
        })
        .collect();
    shared.sort_by_key(|segment| std::cmp::Reverse(segment.area.size()));
    let directory = source.link(&main.file("cwd")).known().cloned();
    Target {
        family: family(source, &others),
        asked: None,
        mounts: MountTree::of_process(source, main.pid()),
        log: log::lines(source, &main, kind, directory.as_deref()),
        vm: vms::vm(source, main.pid()),
        listens: match (kind, directory.as_deref()) {
            (Some(Kind::Postgres), Some(directory)) => postgres::listens(source, &main, directory),
            (Some(Kind::Mysql), _) => mysql::listens(&main),
            (Some(Kind::Redis), _) => redis::listens(&main),
            _ => None,
        },
        directory,
        main,
        others,
        shared,
    }
}

fn touched(source: &Source, pid: u32, area: &Area) -> Reading<Bytes> {
    source.allocated(&format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        area.range.start, area.range.end
    ))
}

/// Processes of which it is not known what they are.
fn unseen(source: &Source, all: &[Program]) -> Unseen {
    let mut unseen = processes::unseen(source);
    let unread = all.iter().filter_map(|program| program.kind.unread());
    unread.for_each(|why| unseen.add(why));
    unseen
}

/// Known programs that run, to choose from; virtual machines by their own names.
fn known(source: &Source, all: &[Program]) -> Vec<String> {
    let name = |program: &Program| {
        let kind = program.kind.known().copied().flatten()?;
        let guest = || vms::vm(source, program.pid())?.name;
        let guest = kind.is_hypervisor().then(guest).flatten();
        Some(guest.unwrap_or_else(|| program.pages.name.clone()))
    };
    let names: BTreeSet<String> = all.iter().filter_map(name).collect();
    names.into_iter().take(8).collect()
}

impl Target {
    /// What all its processes have resident, each page once.
    pub fn coverage(&self) -> Reading<Coverage> {
        self.areas().map(Coverage::of).into()
    }

    /// What backs all its processes; of pools, what is reserved for it counts too.
    pub fn taken(&self) -> Reading<Backing> {
        let taken = |areas: Vec<&Area>| {
            let resident = Coverage::of(areas.iter().copied()).all();
            let pools: BTreeSet<Bytes> = areas.iter().filter_map(|area| area.hugetlb_page()).collect();
            let of_pool = |page: Bytes| (PageKind::Hugetlb(page), taken_of_pool(areas.iter().copied(), page));
            let rest = resident.iter().filter(|(kind, _)| kind.pool().is_none());
            rest.chain(pools.into_iter().map(of_pool)).collect()
        };
        self.areas().map(taken).into()
    }

    /// Is it that of several programs of a kind: `pid=4711`, `port=5433`, or its directory or configuration file?
    fn is_one(&self, which: &str) -> bool {
        match which.split_once('=') {
            Some(("pid", pid)) => pid.parse() == Ok(self.main.pid()),
            Some(("port", port)) => {
                let own = self.listens.as_ref().and_then(|listens| listens.port);
                own.is_some_and(|own| port.parse() == Ok(own))
            }
            _ => {
                let path = Some(which.trim_end_matches('/'));
                let file = self.configuration();
                let directory = file.as_deref().and_then(|file| Some(file.rsplit_once('/')?.0));
                [self.directory.as_deref(), file.as_deref(), directory].contains(&path)
            }
        }
    }

    /// The mappings of all its processes.
    ///
    /// # Errors
    /// If those of the main process could not be read, or not be counted.
    fn areas(&self) -> Result<Vec<&Area>, Unread> {
        let areas: Vec<&Area> = self.main.areas()?.iter().chain(self.family.iter().flatten()).collect();
        match is_counted(areas.iter().copied()) {
            true => Ok(areas),
            false => {
                let why = "counting these pages would hold up a process of this size";
                Err(Unread::new(Cause::Failed, self.main.file("smaps"), why))
            }
        }
    }

    /// The configuration file of a server, where that is known.
    pub fn configuration(&self) -> Option<String> {
        let kind = (*self.main.kind.known()?)?;
        (kind.server()?.configuration)(self)
    }
}

impl SharedMemory {
    /// Pages of one size that hold the segment. PostgreSQL rounds its request up like this.
    pub fn pages(&self, page: Bytes) -> u64 {
        self.area.size().0.div_ceil(page.0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use host::{Snapshot, Source, Tree};

    use super::{TargetError, targets};

    fn error(mounts: &str) -> (String, bool) {
        let status = "Name:\ta\nUid:\t0\t0\t0\t0\nVmRSS:\t9 kB\nVmPTE:\t9 kB\n";
        let tree = Tree::new()
            .file("/proc/7/status", status)
            .file("/proc/7/cmdline", "a\0")
            .file("/proc/self/mounts", format!("proc /proc proc rw{mounts} 0 0\n"));
        let source = Source::from_tree("made", tree);
        let found = targets(&source, &Snapshot::take(&source), "postgres");
        let why = found.expect_err("none");
        let is_hidden = matches!(&why, TargetError::NotFound { unseen, .. } if unseen.hidden.is_some());
        (why.to_string(), is_hidden)
    }

    #[test]
    fn a_program_that_may_be_hidden_is_not_said_to_be_absent() {
        let (shown, is_hidden) = error("");
        assert!(
            shown.contains("no PostgreSQL process runs here") && !is_hidden,
            "{shown}"
        );
        let (shown, is_hidden) = error(",hidepid=invisible");
        assert!(shown.contains("was found") && is_hidden, "{shown}");
    }
}
