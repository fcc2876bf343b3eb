//! Starts a program in a child, which sets up itself what the program is to have, and reports the step that failed.

mod image;
mod order;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use chase::counters::program::{Attached, Held};
use chase::counters::residency::Residency;
use chase::counters::rings;
use chase::counters::switches::{Recorded, Switches};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

use crate::cgroup::Cgroup;
use crate::guard::{Place, mark};
use crate::outputs::Outputs;
use crate::syscall::{Stack, Switched, bind, execute, take_files, unblock_signals, vfork, wait};
use image::Image;

pub use image::find;
pub use order::{Bound, Order, Output};

/// Nodes that fit a mask here.
const NODES: usize = 1024;

/// A program that runs, or will have to be reaped.
pub(crate) struct Started {
    /// Its id, and that of its group.
    pub(crate) pid: Pid,
    /// It never comes to mean another.
    pub(crate) handle: OwnedFd,
    /// When it executed the program: making a process is no part of the program's time.
    pub(crate) began: Instant,
    pub(crate) recorders: Recorders,
    /// What it was started in, if it was to be and could be.
    pub(crate) cgroup: Option<Cgroup>,
    /// The guardian knows of it, and its group, as long as this lives.
    pub(crate) _place: Place,
}

/// What counts and records a program from its first instruction on, as far as that was ordered.
#[derive(Default)]
pub struct Recorders {
    /// Its counters, unless one of them could not be opened.
    pub(crate) counters: Option<Attached>,
    /// Its context switches, or why they are not recorded.
    pub switches: Option<io::Result<Switches>>,
    /// Where it runs, or why that is not known.
    pub residency: Option<io::Result<Residency>>,
}

/// A step that failed, and why.
#[derive(Debug)]
pub struct Failure {
    pub step: Step,
    /// Why it failed.
    pub error: io::Error,
}

model::table! {
    /// The steps of starting a program, in order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Step: &'static str {
        /// A guardian, for the case that this process is killed.
        Guard = "a guardian over it",
        /// Input and outputs.
        Files = "its input and output",
        Process = "a process",
        /// Ending with its parent.
        Tie = "ending with its parent",
        Group = "a process group of its own",
        /// What it is shut in with.
        Rights = "the user, the limits and the session that it is to have",
        Switch = "its THP switch (prctl PR_SET_THP_DISABLE)",
        Cpus = "its CPUs",
        Nodes = "its nodes",
        Program = "the program",
    }
}

impl Step {
    /// What it is about, for a message.
    pub fn title(self) -> &'static str {
        self.row()
    }

    pub fn failed(self, error: impl Into<io::Error>) -> Failure {
        Failure {
            step: self,
            error: error.into(),
        }
    }
}

/// What a child leaves to its parent, in whose memory it is until it executes its program.
#[derive(Default)]
struct Left {
    recorders: Recorders,
    began: Option<Instant>,
    failure: Option<Failure>,
}

/// One child at a time: what it does to its memory, it does to this process's.
static STARTING: LazyLock<Mutex<Stack>> = LazyLock::new(|| Mutex::new(Stack::new()));
/// Of the first program with counters; the others have the same.
static HELD: OnceLock<Held> = OnceLock::new();

impl Order<'_> {
    /// Starts it; the program runs when this returns.
    ///
    /// # Errors
    /// The step that failed; nothing is left of it.
    pub(crate) fn start(
        &self,
        outputs: &Outputs,
        mut cgroup: Option<Cgroup>,
        is_marked: bool,
    ) -> Result<Started, Failure> {
        let place = Place::free().map_err(|error| Step::Guard.failed(error))?;
        let image = Image::of(self, is_marked.then(mark)).map_err(|error| Step::Program.failed(error))?;
        let input = nothing().map_err(|error| Step::Files.failed(error))?;
        let files = [input.as_fd(), outputs.output.as_fd(), outputs.errors.as_fd()];
        if !self.events.is_empty() {
            HELD.get_or_init(|| Held::of(self.events));
        }
        // Mapped here, and not in the child, whose time counts.
        rings::prepare(self.places);
        let parent = rustix::process::getpid();
        let mut left = Left::default();
        let started = {
            let mut stack = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
            let _switched = Switched::to(self.thp).map_err(|error| Step::Switch.failed(error))?;
            let mut life = || {
                let ready = self.set_up(&place, parent, files, &mut left);
                left.failure = Some(ready.map_or_else(|failure| failure, |()| left.execute(&image)));
            };
            vfork(&mut stack, &mut life, &mut cgroup)
        };
        let (pid, handle) = started.map_err(|error| Step::Process.failed(error))?;
        if let Some(failure) = left.failure {
            let _ = wait(pid);
            return Err(failure);
        }
        Ok(Started {
            pid,
            handle,
            // It did not come to that if it was killed before.
            began: left.began.unwrap_or_else(Instant::now),
            recorders: left.recorders,
            cgroup,
            _place: place,
        })
    }

    fn set_up(&self, place: &Place, parent: Pid, files: [BorrowedFd<'_>; 3], left: &mut Left) -> Result<(), Failure> {
        tie_to(parent).map_err(|error| Step::Tie.failed(error))?;
        let group = match self.shut_in {
            // Of its own session it leads the only group: it has no terminal, and cannot get this one's.
            Some(_) => rustix::process::setsid().map(drop),
            None => rustix::process::setpgid(None, None),
        };
        group.map_err(|error| Step::Group.failed(error))?;
        place.lead();
        if let Some(bound) = self.bound.filter(|bound| !bound.cpus.is_empty()) {
            let cpus = bound.cpus.iter().fold(CpuSet::new(), with_cpu);
            rustix::thread::sched_setaffinity(None, &cpus).map_err(|error| Step::Cpus.failed(error))?;
        }
        if let Some(bound) = self.bound.filter(|bound| !bound.nodes.is_empty()) {
            let mask = node_mask(&bound.nodes);
            bind(&mask, bound.interleave).map_err(|error| Step::Nodes.failed(error))?;
        }
        // Opened in the table of files that both have, before the child has its own.
        let switches = || Switches::of(0, self.switches, Recorded::Switches);
        left.recorders = Recorders {
            counters: Attached::to(0, self.events).ok(),
            switches: (!self.switches.is_empty()).then(switches),
            residency: (!self.places.is_empty()).then(|| Residency::from_exec(self.places)),
        };
        take_files(files).map_err(|error| Step::Files.failed(error))?;
        if let Some(shut_in) = self.shut_in {
            shut_in
                .enter(self.inherited)
                .map_err(|error| Step::Rights.failed(error))?;
            // A new user clears it.
            tie_to(parent).map_err(|error| Step::Tie.failed(error))?;
        }
        Ok(())
    }
}

impl Left {
    /// In the child: becomes the program, or gives why not.
    fn execute(&mut self, image: &Image) -> Failure {
        unblock_signals();
        self.began = Some(Instant::now());
        Step::Program.failed(execute(&image.file, &image.words, &image.variables))
    }
}

/// An input without anything in it, the same for all.
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    match NOTHING.get() {
        Some(file) => Ok(file),
        None => File::open("/dev/null").map(|file| NOTHING.get_or_init(|| file)),
    }
}

fn tie_to(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the child was tied to it.
    let is_there = rustix::process::getppid() == Some(parent);
    is_there.then_some(()).ok_or(io::ErrorKind::BrokenPipe.into())
}

fn with_cpu(mut set: CpuSet, &cpu: &u32) -> CpuSet {
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
    }
    set
}

fn node_mask(nodes: &[u32]) -> [u64; NODES / 64] {
    let mut mask = [0; NODES / 64];
    for &node in nodes {
        if let Some(word) = mask.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    }
    mask
}
