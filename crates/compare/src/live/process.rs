//! One process of an arm with all that descend from it: started, watched until it ends, and never left behind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::process::handles::{self, ENDING, Handles};
use ::process::{Ended, Outputs, Place, Seen, Watch, tree};
use chase::counters::program::{Attached, Event};
use host::Source;
use rustix::process::{Pid, Signal, getpgid, kill_process_group};

use super::said;
use super::spawned::Spawned;
use super::squeeze::Squeeze;
use crate::Error;
use crate::preload::{Armed, Report};

/// The first reading comes after this long, the others farther apart; so a short program is seen, and a long one is left
/// alone.
const FIRST: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_millis(100);
/// The pause after a reading is at least so many times as long as the reading.
const READING: u32 = 20;
/// Between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);

/// A child in a process group of its own.
pub(crate) struct Process {
    arm: String,
    pid: Pid,
    outputs: Arc<Outputs>,
    began: Instant,
    ended_after: Option<Duration>,
    reaped: bool,
    watch: Option<Watch>,
    squeeze: Option<Squeeze>,
    armed: Option<Armed>,
    attached: Option<Attached>,
    pause: Duration,
    may_leave_servers: bool,
    /// The group and those that descend from it, as the guardian knows them.
    _group: Place,
    descendants: RefCell<BTreeMap<u32, Place>>,
}

/// A process that has ended.
pub(super) struct Done {
    pub(super) wall: Duration,
    pub(super) ended: Ended,
    pub(super) outputs: Arc<Outputs>,
    pub(super) seen: Seen,
    pub(super) note: Option<String>,
    /// CPU time of this process that went into collapsing its pages.
    pub(super) collapsing: Duration,
    pub(super) counts: Vec<(Event, f64)>,
}

impl Process {
    pub(crate) fn start(what: Spawned<'_>) -> Result<Self, Error> {
        let outputs = what.outputs()?;
        let began = Instant::now();
        let started = what.start(&outputs)?;
        let attached = what.counting.zip(started.counters);
        Ok(Self {
            arm: what.arm.name.clone(),
            pid: started.pid,
            outputs,
            began,
            ended_after: None,
            reaped: false,
            watch: Some(Watch::expecting(what.expected)),
            squeeze: what.setup.collapse.map(|what| Squeeze::new(what, started.pid)),
            armed: what.armed,
            attached: attached.and_then(|(counting, files)| counting.attached(files)),
            pause: FIRST,
            may_leave_servers: what.may_leave_servers,
            _group: started.place,
            descendants: RefCell::default(),
        })
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Tells the guardian who descends from it: their groups may be their own.
    pub(crate) fn guard(&self, tree: &[u32]) {
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

    /// Waits until it ends, or for as long as said; tells whether it has ended.
    pub(crate) fn wait(&mut self, at_most: Option<Duration>, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        self.pass(at_most, stop, Self::read)
    }

    /// Likewise, without a reading or anything else that it could feel.
    pub(crate) fn rest(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        self.pass(Some(time), stop, |process| process.pause = SELDOM)
    }

    fn pass(
        &mut self,
        at_most: Option<Duration>,
        stop: &dyn Fn() -> bool,
        between: impl Fn(&mut Self),
    ) -> Result<bool, Error> {
        let until = at_most.map(|time| Instant::now() + time);
        while self.ended_after.is_none() {
            let due = Instant::now() + self.pause;
            if self.has_ended_by(until.map_or(due, |until| due.min(until)), stop)? {
                self.ended_after = Some(self.began.elapsed());
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
    fn has_ended_by(&self, due: Instant, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        loop {
            if stop() {
                return Err(Error::Interrupted);
            }
            let look = if self.outputs.shorten() { FIRST } else { SELDOM };
            let left = due.saturating_duration_since(Instant::now());
            let ended = ::process::has_ended_within(self.pid, left.min(look)).map_err(|error| Error::Setup {
                arm: self.arm.clone(),
                what: "waiting for it".to_owned(),
                error,
            })?;
            if ended || Instant::now() >= due {
                return Ok(ended);
            }
        }
    }

    /// One reading, and the pause until the next, which grows with what the reading took. Collapsing is no reading.
    fn read(&mut self) {
        let pid = self.id();
        self.squeeze();
        let began = Instant::now();
        if let Some(watch) = &mut self.watch {
            let tree = watch.tick(pid);
            self.guard(&tree);
        }
        self.pause = (self.pause * 5 / 4).min(SELDOM).max(began.elapsed() * READING);
    }

    /// Collapses what came since the last time, where the arm is about that.
    pub(crate) fn squeeze(&mut self) {
        if let Some(squeeze) = &mut self.squeeze {
            squeeze.tick();
        }
    }

    /// The end of what it wrote to standard output so far.
    pub(crate) fn output(&self) -> String {
        self.outputs.output()
    }

    /// That it has ended, as an error.
    pub(crate) fn gone(&self) -> Error {
        let status = ::process::peek(self.pid);
        Error::Gone {
            arm: self.arm.clone(),
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            said: said(&self.outputs.errors()),
        }
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&self) {
        // Fails only if it has ended.
        let _ = rustix::process::kill_process(self.pid, Signal::TERM);
    }

    /// Its accounts. What it started and left behind ends with it, and has ended when this returns.
    pub(super) fn end(mut self) -> Result<Done, Error> {
        let outside = if self.may_leave_servers {
            Handles::default()
        } else {
            self.outside(&Source::live())
        };
        let ended = self.kill_with(&outside).map_err(|error| Error::Setup {
            arm: self.arm.clone(),
            what: "its accounts".to_owned(),
            error,
        })?;
        let seen = self.watch.take().unwrap_or_default().finish(ended.max_rss);
        Ok(Done {
            wall: self.ended_after.unwrap_or_else(|| self.began.elapsed()),
            outputs: Arc::clone(&self.outputs),
            note: self.note_with(", counted in as its system time"),
            collapsing: self.squeeze.as_ref().map_or(Duration::ZERO, Squeeze::took),
            counts: self.counted(),
            ended,
            seen,
        })
    }

    /// What its counters counted since they were last read, or from its start.
    pub(crate) fn counted(&mut self) -> Vec<(Event, f64)> {
        self.attached.as_mut().map_or_else(Vec::new, Attached::read)
    }

    /// What was done to it between slices, in words.
    pub(crate) fn note(&self) -> Option<String> {
        self.note_with(", which is in no slice")
    }

    /// What was done to it while it ran, in words, and where the time for that is.
    fn note_with(&self, place: &str) -> Option<String> {
        let squeezed = self.squeeze.as_ref().map(|squeeze| squeeze.told(place));
        let armed = self.armed.as_ref().map(|armed| match armed.report() {
            Ok(report) => served(&report),
            Err(error) => error.to_string(),
        });
        squeezed.or(armed)
    }

    /// Those that descend from it, as far as that is known, and have left its group.
    fn outside(&self, source: &Source) -> Handles {
        let known = self.descendants.borrow();
        let mut found = Handles::default();
        for (&pid, place) in known.iter().filter(|(pid, _)| self.is_outside(**pid)) {
            found.extend(Handles::with_descendants(source, pid, || place.is_same(source, pid)));
        }
        let now = tree::of(source, self.id()).pids.into_iter();
        found.extend(Handles::of(
            now.filter(|pid| !known.contains_key(pid) && self.is_outside(*pid)),
        ));
        found
    }

    fn is_outside(&self, pid: u32) -> bool {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let group = pid.and_then(|pid| getpgid(Some(pid)).ok());
        group.is_some_and(|group| group != self.pid)
    }

    /// Kills all of it, waits until all have ended, and gives the accounts of the first. The group is there as long as its leader
    /// has not been waited for, so that its number means no other.
    fn kill_with(&mut self, outside: &Handles) -> io::Result<Ended> {
        handles::kill_group(self.pid);
        outside.signal(Signal::KILL);
        let ended = ::process::wait(self.pid)?;
        self.reaped = true;
        let until = Instant::now() + ENDING;
        handles::group_has_ended_by(&Source::live(), self.pid, until);
        outside.have_ended_by(until);
        Ok(ended)
    }
}

impl Drop for Process {
    /// On every way out: asked to end first, so that all of them can put their own things back.
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        let source = Source::live();
        let until = Instant::now() + GRACE;
        let mut outside = self.outside(&source);
        let _ = kill_process_group(self.pid, Signal::TERM);
        outside.signal(Signal::TERM);
        let _ = self.wait(Some(GRACE), &|| false);
        handles::group_has_ended_by(&source, self.pid, until);
        outside.have_ended_by(until);
        // Those that came meanwhile.
        outside.extend(self.outside(&source));
        let _ = self.kill_with(&outside);
    }
}

/// What the library ordered and was refused.
fn served(report: &Report) -> String {
    let served = report
        .served
        .iter()
        .map(|(kind, tally)| format!("{kind} {} in {} regions", tally.bytes, tally.regions));
    let refused = report.fallbacks.iter().map(|(errno, count)| {
        format!(
            "{count} regions fell back: {}",
            std::io::Error::from_raw_os_error(*errno)
        )
    });
    let all: Vec<String> = served.chain(refused).collect();
    if all.is_empty() {
        "the library in front saw no mapping large enough".to_owned()
    } else {
        format!("ordered by the library in front: {}", all.join(", "))
    }
}
