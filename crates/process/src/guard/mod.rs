//! A small process that outlives this one by a moment: should this one be killed, it ends what this one started.
//!
//! The kernel kills a child with its parent, but not the child's own children, and one of them that is stopped would stay
//! stopped for ever. So the guardian, forked once, waits for the end of a pipe that only this process holds open. It finds
//! the processes to end in memory that both share: registering one costs no system call, and a child registers itself before it
//! executes its program. What a program started in a session of its own, just before, descends from nobody known when the kernel has
//! killed that program: a variable that it inherited shows it.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use host::Source;
use host::copy::{fork, is_reader, keep_only, only_file};
use host::processes::Stat;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use crate::cgroup;
use crate::ended::END_TIMEOUT;
use crate::handles::{self, Handles};
use crate::segments::Makers;
use crate::syscall::{self, Slot, wait};
use crate::tree;

/// Processes and groups that can be registered at a time: far more than arms and their descendants come to.
const SLOTS: usize = 4096;
/// A guardian that is dismissed needs a millisecond, unless it has something to end, or was stopped.
const DISMISS_TIMEOUT: Duration = Duration::from_secs(6);
/// What a guardian reads before the pipe's end if it is dismissed.
const DISMISSED: u8 = 1;
/// No process is registered in it.
const FREE: i32 = 0;
/// It is about to be filled.
const TAKEN: i32 = i32::MIN;

/// The guardian, as this process has it.
struct Guard {
    slots: &'static [Slot],
    /// When it is closed, the guardian knows that this process has ended.
    alive: Mutex<Option<PipeWriter>>,
    pid: Pid,
}

static GUARD: OnceLock<io::Result<Guard>> = OnceLock::new();
/// What the guardian does last.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Has a guardian that is started later do this after all that this process started has ended with it: to give back what no
/// process holds. It is called at every end of this process, in a copy of it that has one thread. The first call counts.
pub fn at_end(last: fn()) {
    LAST.get_or_init(|| last);
}

/// Starts the guardian, unless it lives already: a process that starts others has one from the first of them on.
///
/// # Errors
/// If it cannot be started.
pub fn guarded() -> io::Result<()> {
    Guard::of_this_process().map(drop)
}

/// The variable by which the guardian finds the programs of this process, and all that descends from them.
pub(crate) fn mark() -> &'static (OsString, OsString) {
    static MARK: OnceLock<(OsString, OsString)> = OnceLock::new();
    MARK.get_or_init(|| {
        let name = format!("HUGEWISE_GUARD_{}", std::process::id());
        (name.into(), now().to_string().into())
    })
}

/// A slot of the guardian's; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(&'static Slot);

impl Place {
    /// A free one, with a guardian that lives.
    ///
    /// # Errors
    /// If the guardian cannot be started, or all slots are in use.
    pub(crate) fn free() -> io::Result<Self> {
        let guard = Guard::of_this_process()?;
        let take = |slot: &&Slot| {
            let taken = slot
                .target
                .compare_exchange(FREE, TAKEN, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        };
        let free = guard.slots.iter().find(take);
        free.map(Self)
            .ok_or_else(|| io::Error::other(format!("more than {SLOTS} processes at once")))
    }

    /// Registers the calling process as the leader of its group. A child calls this before it executes its program.
    pub(crate) fn lead(&self) {
        self.register(-rustix::process::getpid().as_raw_nonzero().get());
    }

    /// Registers a process that lives; returns whether it could be one.
    pub(crate) fn hold(&self, pid: u32) -> bool {
        handles::by_number(pid)
            .inspect(|pid| self.register(pid.as_raw_nonzero().get()))
            .is_some()
    }

    /// Is the process of this id still the one that was registered?
    pub(crate) fn is_same(&self, source: &Source, pid: u32) -> bool {
        is_same(source, pid, self.0.since.load(Ordering::Relaxed)) == Some(true)
    }

    fn register(&self, target: i32) {
        self.0.since.store(now(), Ordering::Relaxed);
        self.0.target.store(target, Ordering::Release);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.target.store(FREE, Ordering::Release);
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32).as_nanos() as u64
}

impl Guard {
    /// The one there is, started by the first who asks.
    fn of_this_process() -> io::Result<&'static Self> {
        let start = || {
            let (name, value) = mark();
            let mark = [name.as_bytes(), value.as_bytes()].join(&b'=');
            let guard = Self::start(cgroup::own_base(), &mark)?;
            syscall::at_exit(dismiss).map(|()| guard)
        };
        let guard = GUARD.get_or_init(start).as_ref();
        guard.map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    fn start(cgroups: Option<&Path>, mark: &[u8]) -> io::Result<Self> {
        let slots = syscall::shared(SLOTS)?;
        let (ended, alive) = io::pipe()?;
        let ward = rustix::process::getpid();
        let pid = fork(|| {
            keep_only(ended.as_fd());
            keep_watch(ward, slots, cgroups, mark);
        })?;
        Ok(Self {
            slots,
            alive: Mutex::new(Some(alive)),
            pid,
        })
    }

    /// Is it a process that this one started, or the guardian?
    fn started(&self, pid: i32) -> bool {
        let leads = |slot: &Slot| slot.target.load(Ordering::Relaxed) == -pid;
        self.pid.as_raw_nonzero().get() == pid || self.slots.iter().any(leads)
    }

    /// Has it end, and waits for that: the first process of a container, which would adopt it otherwise, may never do so.
    fn dismiss(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut alive) = alive else { return };
        // It would wait for this process's end otherwise, and this process waits for it.
        let _ = alive.write_all(&[DISMISSED]);
        drop(alive);
        let handle = pidfd_open(self.pid, PidfdFlags::empty());
        let has_ended = handle.and_then(|handle| handles::has_ended_within(&handle, DISMISS_TIMEOUT));
        if has_ended.unwrap_or(false) {
            // Fails only if it was waited for already.
            let _ = wait(self.pid);
        }
    }
}

/// From here on processes that lose their parents come to this one, if they descend from it. Gives those that have, ended or not.
pub(crate) fn adopt_orphans(source: &Source) -> Vec<u32> {
    // Known since Linux 3.4.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let guard = GUARD.get().and_then(|guard| guard.as_ref().ok());
    let is_known = |pid: &u32| is_reader(*pid) || guard.is_some_and(|guard| guard.started(pid.cast_signed()));
    let mut children = tree::children(source, std::process::id());
    children.retain(|pid| !is_known(pid));
    children
}

/// When this process ends of itself.
extern "C" fn dismiss() {
    if let Some(Ok(guard)) = GUARD.get() {
        guard.dismiss();
    }
}

/// The guardian's life, with the pipe's end as its only file: on its own, so that no terminal and no signal to others ends it.
fn keep_watch(ward: Pid, slots: &[Slot], cgroups: Option<&Path>, mark: &[u8]) {
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"hugewise-guard");
    let _ = rustix::process::chdir("/");
    let mut word = [0];
    while rustix::io::retry_on_intr(|| rustix::io::read(only_file(), &mut word)).is_ok_and(|read| read > 0) {}
    let source = Source::live();
    let killed: Vec<Killed> = slots.iter().filter_map(|slot| slot.end(&source)).collect();
    let until = Instant::now() + END_TIMEOUT;
    for killed in &killed {
        killed.wait(&source, until);
    }
    end_marked(&source, mark, until);
    for killed in &killed {
        if let Killed::Group(_, makers) = killed {
            makers.clear(&source);
        }
    }
    if let Some(base) = cgroups {
        cgroup::remove_left(base, ward.as_raw_nonzero().get().cast_unsigned());
    }
    if word != [DISMISSED] {
        see_end(ward, until);
    }
    if let Some(last) = LAST.get() {
        last();
    }
}

/// Waits for the end of the process that was killed: it closes its files one after the other, and what it holds locked may follow the pipe.
fn see_end(ward: Pid, until: Instant) {
    while rustix::process::getppid() == Some(ward) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills all that have the variable, and those that they start during this, at most until then.
fn end_marked(source: &Source, mark: &[u8], until: Instant) {
    while Instant::now() < until {
        let marked = Handles::of(tree::with_variable(source, mark));
        if marked.is_empty() {
            return;
        }
        marked.signal(Signal::KILL);
        marked.have_ended_by(until);
    }
}

/// What is to end with this process.
enum Killed {
    /// By its leader.
    Group(Pid, Makers),
    Processes(Handles),
}

impl Killed {
    /// Until it has ended, and no longer than that.
    fn wait(&self, source: &Source, until: Instant) {
        match self {
            Self::Group(leader, _) => handles::group_has_ended_by(source, *leader, until),
            Self::Processes(all) => all.have_ended_by(until),
        };
    }
}

impl Slot {
    /// Kills the process or group that is registered in it.
    fn end(&self, source: &Source) -> Option<Killed> {
        let target = self.target.load(Ordering::Acquire);
        if matches!(target, FREE | TAKEN) {
            return None;
        }
        let (pid, number) = (Pid::from_raw(target.abs())?, u32::try_from(target.abs()).ok()?);
        let since = self.since.load(Ordering::Relaxed);
        if target > 0 {
            let is_same = || is_same(source, number, since) == Some(true);
            let all = Handles::with_descendants(source, number, is_same);
            all.signal(Signal::KILL);
            return Some(Killed::Processes(all));
        }
        // Without its leader, a group that still has members keeps the number to itself.
        (is_same(source, number, since) != Some(false)).then(|| {
            let makers = Makers::of_stopped(source, pid, Duration::from_nanos(now().saturating_sub(since)));
            handles::signal_group(pid, Signal::KILL);
            Killed::Group(pid, makers)
        })
    }
}

/// Is the process of this number the one that had it then? `None` if there is none.
fn is_same(source: &Source, pid: u32, since: u64) -> Option<bool> {
    let started = Stat::of(source, pid).into_result().ok()??.started()?;
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    // Both are rounded down, so that a process that registered itself at once began in the same tick at the latest.
    Some(started <= since / tick)
}
