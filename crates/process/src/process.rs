//! One process with all that descend from it: started, watched until it ends, and never left behind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chase::counters::program::{Attached, Event};
use host::Source;
use rustix::io::Errno;
use rustix::process::{Signal, getpgid};

use crate::cgroup::Cgroup;
use crate::ended::{END_TIMEOUT, Ended, TERM_TIMEOUT};
use crate::guard::{self, Place};
use crate::handles::{self, Handles};
use crate::outputs::Outputs;
use crate::segments::Makers;
use crate::spawn::{Failure, Order, Output, Recorders, Started, Step};
use crate::syscall;
use crate::tree;
use crate::watch::{Attention, Seen, Watch};

/// The first reading comes after this long, the others farther apart; so a short program is seen, and a long one is left
/// alone.
const FIRST_PERIOD: Duration = Duration::from_millis(5);
const LONGEST_PERIOD: Duration = Duration::from_millis(100);
/// The pause after a reading is at least so many times as long as the reading.
const READING: u32 = 20;

/// A child in a process group of its own.
pub struct Process {
    /// With its cgroup, which holds all that descends from it.
    started: Started,
    /// What it wrote so far.
    pub outputs: Arc<Outputs>,
    ended_after: Option<Duration>,
    reaped: bool,
    watch: Watch,
    pause: Duration,
    /// How long its outputs are left alone: it begins with empty ones.
    left_alone: Duration,
    may_leave_servers: bool,
    /// Those that came to this process before, where there is no cgroup.
    orphans: Option<Vec<u32>>,
    /// Those that descend from it, as the guardian knows them.
    descendants: RefCell<BTreeMap<u32, Place>>,
}

/// A process that has ended.
pub struct Done {
    /// From its start to its end, or to when it was ended.
    pub wall: Duration,
    /// How it ended, and what it used.
    pub ended: Ended,
    pub outputs: Arc<Outputs>,
    /// What it had, as seen from outside.
    pub seen: Seen,
    /// What its counters counted since they were last read.
    pub counts: Vec<(Event, f64)>,
}

/// Why it was waited for no longer.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl Process {
    /// Starts it, in a cgroup of its own where that is possible. Processes with sessions of their own may outlive it, if
    /// `may_leave_servers` says so and it is not shut in; then it has none.
    ///
    /// # Errors
    /// The step that failed; nothing is left of it.
    pub fn start(order: &Order<'_>, attention: Attention, may_leave_servers: bool) -> Result<Self, Failure> {
        let outputs = match order.output {
            Output::Kept => Outputs::new(),
            Output::Passed => Outputs::passed(),
        };
        let outputs = outputs.map_err(|error| Step::Files.failed(error))?;
        let may_leave_servers = may_leave_servers && order.shut_in.is_none();
        let cgroup = if may_leave_servers { None } else { Cgroup::new() };
        let is_alone = cgroup.is_none() && !may_leave_servers;
        let orphans = is_alone.then(|| guard::adopt_orphans(&Source::live()));
        let started = order.start(&outputs, cgroup, !may_leave_servers)?;
        Ok(Self {
            started,
            outputs: Arc::new(outputs),
            ended_after: None,
            reaped: false,
            watch: Watch::new(attention, order.thp_size),
            pause: FIRST_PERIOD,
            left_alone: FIRST_PERIOD,
            may_leave_servers,
            orphans,
            descendants: RefCell::default(),
        })
    }

    pub fn id(&self) -> u32 {
        self.started.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// What counts and records it. Its readers take records out of it.
    pub fn recorders(&mut self) -> &mut Recorders {
        &mut self.started.recorders
    }

    /// Reports to the guardian what descends from it: descendants may have groups of their own.
    pub fn guard(&self, tree: &[u32]) {
        let mut known = self.descendants.borrow_mut();
        known.retain(|pid, _| tree.contains(pid));
        for &pid in tree.iter().filter(|pid| **pid != self.id()) {
            let place = || Place::free().ok().filter(|place| place.hold(pid));
            if !known.contains_key(&pid)
                && let Some(place) = place()
            {
                known.insert(pid, place);
            }
        }
    }

    /// Waits until it ends, or for the given time; returns whether it has ended. `before` is called before each reading, and is no
    /// part of what a reading takes.
    ///
    /// # Errors
    /// [`WaitError::Interrupted`] as soon as `stop` says so, or the kernel's.
    pub fn wait(
        &mut self,
        at_most: Option<Duration>,
        stop: &dyn Fn() -> bool,
        before: &mut dyn FnMut(),
    ) -> Result<bool, WaitError> {
        self.pass(at_most, stop, |process| {
            before();
            process.read();
        })
    }

    /// Likewise, without a reading or anything else that could disturb it.
    ///
    /// # Errors
    /// As of [`Process::wait`].
    pub fn rest(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> Result<bool, WaitError> {
        self.pass(Some(time), stop, |process| process.pause = LONGEST_PERIOD)
    }

    fn pass(
        &mut self,
        at_most: Option<Duration>,
        stop: &dyn Fn() -> bool,
        mut between: impl FnMut(&mut Self),
    ) -> Result<bool, WaitError> {
        let until = at_most.map(|time| Instant::now() + time);
        while self.ended_after.is_none() {
            let due = Instant::now() + self.pause;
            if self.has_ended_by(until.map_or(due, |until| due.min(until)), stop)? {
                self.ended_after = Some(self.started.began.elapsed());
            } else {
                between(self);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        Ok(self.ended_after.is_some())
    }

    /// Looks up now and then: a signal that asks this program to stop does not end the kernel's wait.
    fn has_ended_by(&mut self, due: Instant, stop: &dyn Fn() -> bool) -> Result<bool, WaitError> {
        loop {
            if stop() {
                return Err(WaitError::Interrupted);
            }
            let left = due.saturating_duration_since(Instant::now());
            match handles::has_ended_within(&self.started.handle, left.min(self.left_alone)) {
                Ok(true) => return Ok(true),
                Ok(false) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            self.left_alone = match self.outputs.shorten() {
                true => FIRST_PERIOD,
                false => LONGEST_PERIOD,
            };
            if Instant::now() >= due {
                return Ok(false);
            }
        }
    }

    /// One reading, and the pause until the next, which grows with what the reading took.
    fn read(&mut self) {
        let pid = self.id();
        let began = Instant::now();
        let tree = self.watch.tick(pid);
        self.guard(&tree);
        self.pause = (self.pause * 5 / 4).min(LONGEST_PERIOD).max(began.elapsed() * READING);
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The kernel's; that it has not ended is `WouldBlock`.
    pub fn status(&self) -> io::Result<ExitStatus> {
        syscall::peek(self.started.pid)
    }

    /// Has it ended, and all that it started with it? Known only of one with a cgroup of its own.
    pub fn has_left_none(&self) -> bool {
        self.ended_after.is_some() && self.started.cgroup.as_ref().is_some_and(Cgroup::has_left_none)
    }

    pub fn ask_to_end(&self) {
        // Fails only if it has ended.
        let _ = rustix::process::kill_process(self.started.pid, Signal::TERM);
    }

    /// What it used. What it started and left behind ends with it, and has ended when this returns.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(mut self) -> io::Result<Done> {
        let outside = if self.may_leave_servers {
            Handles::default()
        } else {
            self.outside(&Source::live())
        };
        let ended = self.kill_with(&outside)?;
        let seen = self.watch.finish(ended.max_rss);
        Ok(Done {
            wall: self.ended_after.unwrap_or_else(|| self.started.began.elapsed()),
            outputs: Arc::clone(&self.outputs),
            counts: self.counted(),
            ended,
            seen,
        })
    }

    /// Kills all of it at once, and waits no longer than this for what the kernel keeps, as one that waits for a file system in user space: what
    /// is there then is left behind.
    pub fn kill_within(mut self, time: Duration) {
        let outside = self.outside(&Source::live());
        self.started.cgroup.iter().for_each(Cgroup::kill);
        handles::signal_group(self.started.pid, Signal::KILL);
        outside.signal(Signal::KILL);
        if handles::has_ended_within(&self.started.handle, time).unwrap_or(false) {
            let _ = self.kill_with(&outside);
        } else {
            self.reaped = true;
            self.started.cgroup.take().into_iter().for_each(Cgroup::leave);
        }
    }

    /// What its counters counted since they were last read, or from its start.
    pub fn counted(&mut self) -> Vec<(Event, f64)> {
        let counters = self.started.recorders.counters.as_mut();
        counters.map_or_else(Vec::new, Attached::read)
    }

    /// Those that descend from it, as far as that is known, and have left its group.
    fn outside(&self, source: &Source) -> Handles {
        let known = self.descendants.borrow();
        let mut found = Handles::default();
        for (&pid, place) in known.iter().filter(|(pid, _)| self.is_outside(**pid)) {
            found.extend(Handles::with_descendants(source, pid, || place.is_same(source, pid)));
        }
        // Those of a process that has ended descend from another one now.
        if self.ended_after.is_none() {
            let now = tree::of(source, self.id()).pids.into_iter();
            let is_new = |pid: &u32| !known.contains_key(pid) && self.is_outside(*pid);
            found.extend(Handles::of(now.filter(is_new)));
        }
        found
    }

    fn is_outside(&self, pid: u32) -> bool {
        let group = handles::by_number(pid).and_then(|pid| getpgid(Some(pid)).ok());
        group.is_some_and(|group| group != self.started.pid)
    }

    /// Kills all of it, waits until all have ended, and gives what they used. The group is there as long as its leader has not been
    /// waited for, so that its number means no other.
    fn kill_with(&mut self, outside: &Handles) -> io::Result<Ended> {
        let source = Source::live();
        let is_killed = self.ended_after.is_none();
        let makers = is_killed.then(|| Makers::of_stopped(&source, self.started.pid, self.started.began.elapsed()));
        let has_left_others = self.started.cgroup.as_ref().is_some_and(|cgroup| cgroup.end(self.id()));
        handles::signal_group(self.started.pid, Signal::KILL);
        outside.signal(Signal::KILL);
        let ended = syscall::wait(self.started.pid)?;
        self.reaped = true;
        let until = Instant::now() + END_TIMEOUT;
        let has_members = handles::has_members(self.started.pid);
        let has_left_others = has_left_others || !outside.is_empty() || has_members || self.has_orphans();
        if has_members {
            handles::group_has_ended_by(&source, self.started.pid, until);
        }
        outside.have_ended_by(until);
        makers.iter().for_each(|makers| makers.clear(&source));
        Ok(ended.of_all(self.started.cgroup.take().and_then(Cgroup::close), has_left_others))
    }

    /// Without a cgroup: did processes that descend from it lose their parents, as daemons do? Nothing adds up what they use.
    fn has_orphans(&self) -> bool {
        let is_new = |before: &Vec<u32>| {
            let now = guard::adopt_orphans(&Source::live());
            now.iter().any(|pid| !before.contains(pid))
        };
        self.orphans.as_ref().is_some_and(is_new)
    }
}

impl Drop for Process {
    /// On every way out: asked to end first, so that all of them can put their own things back.
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        let source = Source::live();
        let until = Instant::now() + TERM_TIMEOUT;
        let mut outside = self.outside(&source);
        let makers = Makers::of(&source, self.started.pid, self.started.began.elapsed());
        handles::signal_group(self.started.pid, Signal::TERM);
        outside.signal(Signal::TERM);
        let _ = self.wait(Some(TERM_TIMEOUT), &|| false, &mut || {});
        handles::group_has_ended_by(&source, self.started.pid, until);
        outside.have_ended_by(until);
        // Those that were started during the grace period.
        outside.extend(self.outside(&source));
        let _ = self.kill_with(&outside);
        makers.clear(&source);
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
