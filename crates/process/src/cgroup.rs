//! A cgroup for each program (cgroup v2), below this process's own: all that descends from the program is in it, whatever its session or user.
//!
//! It is no setting of the machine: it holds processes that this one started, and the guardian removes it when this one has ended.
#![allow(clippy::disallowed_methods)]

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::Source;
use host::membership::group_of;

use crate::ended::{Cpu, END_TIMEOUT};

/// Where this process makes cgroups: its own, as far as that is known.
static BASE: OnceLock<Option<PathBuf>> = OnceLock::new();
/// The kernel did not let a program be started in one.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Those that are empty again: to make one for each program would take a third of the time of a short one.
static FREE: Mutex<Vec<Cgroup>> = Mutex::new(Vec::new());

const PREFIX: &str = "hugewise-";
/// Is anything in a cgroup, and is it frozen?
const EVENTS: &str = "cgroup.events";
/// Processes end and freeze within microseconds, unless the kernel keeps one.
const POLL_PERIOD: Duration = Duration::from_micros(200);

/// A cgroup for one program at a time; those that are still in it are killed, and it is removed, when this is dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: Folder,
    handle: File,
    /// Its `cgroup.events` and `cpu.stat`, which are read for every program.
    events: File,
    stat: File,
    /// What the programs before used.
    before: Cpu,
    /// Was all in it killed? Linux 6.18 then kills whatever `clone3` starts in it, too.
    is_used_up: Cell<bool>,
    /// Was nothing in it any more after its program had ended?
    has_left_none: Cell<bool>,
}

impl Cgroup {
    /// An empty one; `None` without a cgroup v2 that this process may change.
    pub(crate) fn new() -> Option<Self> {
        if let Some(free) = free().pop() {
            return Some(free);
        }
        let is_refused = IS_REFUSED.load(Ordering::Relaxed);
        Self::below(own_base().filter(|_| !is_refused)?)
    }

    fn below(base: &Path) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{}{number}", prefix(std::process::id())));
        fs::create_dir(&path).ok()?;
        let cgroup = Self::open(&path);
        if cgroup.is_none() {
            let _ = fs::remove_dir(&path);
        }
        cgroup
    }

    /// A directory that is no cgroup does not have these files, and neither has Linux before 5.14.
    fn open(path: &Path) -> Option<Self> {
        let open = |name| File::open(path.join(name)).ok();
        Some(Self {
            handle: open("").filter(|_| fs::exists(path.join("cgroup.kill")).unwrap_or(false))?,
            events: open(EVENTS)?,
            stat: open("cpu.stat")?,
            folder: Folder(path.to_owned()),
            before: Cpu::default(),
            is_used_up: Cell::new(false),
            has_left_none: Cell::new(false),
        })
    }

    /// No program can be started in one: there will be no other.
    pub(crate) fn give_up(self) {
        IS_REFUSED.store(true, Ordering::Relaxed);
    }

    /// For the call that starts a process in it.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.0.clone()
    }

    /// Has its program left nothing in it, or one below it, when it ended?
    pub(crate) fn has_left_none(&self) -> bool {
        if !self.has_left_none.get() {
            self.has_left_none.set(has(&now(&self.events), "populated 0"));
        }
        self.has_left_none.get()
    }

    /// Kills all that are in it, and waits until they have ended. Was there any but this one?
    pub(crate) fn end(&self, leader: u32) -> bool {
        if self.has_left_none() {
            return false;
        }
        let has_others = self.folder.pids().iter().any(|pid| *pid != leader);
        self.is_used_up.set(true);
        self.folder.end(Instant::now() + END_TIMEOUT);
        has_others
    }

    /// Kills all that are in it now.
    pub(crate) fn kill(&self) {
        self.is_used_up.set(true);
        self.folder.kill();
    }

    /// Leaves it as it is: what is in it does not end. Another run of this program removes it.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }

    /// What all of them used, when all have ended; those that left it for another are not counted from then on. If it is as it was,
    /// it is kept for the next program.
    pub(crate) fn close(mut self) -> Option<Cpu> {
        let all = cpu(&now(&self.stat))?;
        let used = all.since(self.before);
        if !self.is_used_up.get() && self.is_as_new() {
            self.before = all;
            self.has_left_none.set(false);
            free().push(self);
        }
        Some(used)
    }

    /// Without processes, not frozen, and without cgroups below it, which a program may have made: the kernel counts them among the links.
    fn is_as_new(&self) -> bool {
        let events = now(&self.events);
        let is_idle = has(&events, "populated 0") && has(&events, "frozen 0");
        is_idle && self.handle.metadata().is_ok_and(|about| about.nlink() == 2)
    }
}

/// What a file of the kernel says now: the beginning, which has all that is looked for. Empty if it cannot be read.
fn now(file: &File) -> String {
    let mut bytes = [0; 512];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// Is it a line of that text?
fn has(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line == wanted)
}

fn free() -> MutexGuard<'static, Vec<Cgroup>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.folder.remove(Instant::now() + END_TIMEOUT);
    }
}

fn cpu(stat: &str) -> Option<Cpu> {
    let seconds = |name: &str| {
        let value = stat.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u64>().ok().map(|time| time as f64 / 1e6)
    };
    Some(Cpu {
        user: seconds("user_usec ")?,
        system: seconds("system_usec ")?,
    })
}

/// The directory of a cgroup that this process made.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// That of a program that was started here; `None` if it has none, or has left it.
    pub(crate) fn of(source: &Source, pid: u32) -> Option<Self> {
        let base = BASE.get()?.as_ref()?;
        let text = source.text(&format!("/proc/{pid}/cgroup")).into_result().ok()?;
        let own = prefix(std::process::id());
        let name = group_of(&text, "")?.split('/').find(|part| part.starts_with(&own))?;
        Some(Self(base.join(name)))
    }

    /// Who is in it, or in one below it.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let own = text.lines().filter_map(|line| line.parse().ok());
        own.chain(self.inner().iter().flat_map(Self::pids)).collect()
    }

    fn inner(&self) -> Vec<Self> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| Self(entry.path())).collect()
    }

    /// Stops all that are in it, at most until then. Are they?
    pub(crate) fn freeze(&self, until: Instant) -> io::Result<bool> {
        fs::write(self.0.join("cgroup.freeze"), "1")?;
        Ok(self.is_by("frozen 1", until))
    }

    pub(crate) fn thaw(&self) {
        // Fails only if it is gone.
        let _ = fs::write(self.0.join("cgroup.freeze"), "0");
    }

    fn is(&self, event: &str) -> bool {
        has(&fs::read_to_string(self.0.join(EVENTS)).unwrap_or_default(), event)
    }

    fn is_by(&self, event: &str, until: Instant) -> bool {
        while !self.is(event) {
            if Instant::now() >= until {
                return false;
            }
            sleep(POLL_PERIOD);
        }
        true
    }

    fn end(&self, until: Instant) {
        self.kill();
        self.is_by("populated 0", until);
    }

    fn kill(&self) {
        // The kernel lets no process in it fork in between. Fails only if it is gone.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// With all that are in it, and those below it that the program made.
    fn remove(&self, until: Instant) {
        while let Err(error) = fs::remove_dir(&self.0) {
            if error.kind() != ErrorKind::ResourceBusy || Instant::now() >= until {
                return;
            }
            self.end(until);
            self.inner().iter().for_each(|inner| inner.remove(until));
        }
    }
}

/// Removes those of a process that ended without having done so.
pub(crate) fn remove_left(base: &Path, of: u32) {
    for (path, _) in ours(base).into_iter().filter(|(_, pid)| *pid == of) {
        Folder(path).remove(Instant::now() + END_TIMEOUT);
    }
}

fn prefix(pid: u32) -> String {
    format!("{PREFIX}{pid}-")
}

pub(crate) fn own_base() -> Option<&'static Path> {
    let find = || {
        let base = host::mountinfo::own_group(&Source::live()).map(PathBuf::from);
        base.inspect(|base| remove_abandoned(base))
    };
    BASE.get_or_init(find).as_deref()
}

/// Cgroups that programs of this name made there, with the ids of those.
fn ours(base: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let known = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some((entry.path(), pid.parse().ok()?))
    });
    known.collect()
}

/// Empty ones that a killed process and its guardian left. One with processes in it may be that of a process that is not seen from here.
fn remove_abandoned(base: &Path) {
    for (path, pid) in ours(base) {
        if !fs::exists(format!("/proc/{pid}")).unwrap_or(true) {
            // Fails for one that is in use.
            let _ = fs::remove_dir(path);
        }
    }
}
