//! Starts a program in a forked child, which sets up itself what the program is to have, and reports the step that failed.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

use chase::counters::program::{Attached, Countable};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

use crate::guard::Place;
use crate::outputs::Outputs;
use crate::syscall::{bind, fork, switch_thp, unblock_signals, wait};

/// Nodes that fit a mask here.
const NODES: usize = 1024;

/// Where a program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// The CPUs that may be used; empty for all.
    pub cpus: Vec<u32>,
    /// The nodes that memory comes from; empty for the kernel's choice.
    pub nodes: Vec<u32>,
    /// From these by turns?
    pub interleave: bool,
}

/// The THP switch of one process and its children (`PR_SET_THP_DISABLE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThpSwitch {
    /// As it is.
    #[default]
    Left,
    /// Off.
    Off,
    /// Off but for advised memory.
    ExceptAdvised,
}

/// What to start, and how.
pub struct Order<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Variables to set.
    pub env: &'a [(OsString, OsString)],
    /// Variables to leave out.
    pub unset: &'a [String],
    /// The THP switch.
    pub thp: ThpSwitch,
    /// Where it runs.
    pub bound: &'a Bound,
    /// What is counted.
    pub events: &'a [Countable],
}

/// A program that runs, or will have to be reaped.
pub(crate) struct Started {
    /// Its id, and that of its group.
    pub(crate) pid: Pid,
    /// When it was allowed to execute the program: copying this process is no part of the program's time.
    pub(crate) began: Instant,
    /// The guardian knows of it as long as this lives.
    pub(crate) place: Place,
    /// Its counters, unless one of them could not be opened.
    pub(crate) counters: Option<Attached>,
}

/// A step that failed, and why.
#[derive(Debug)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// Why it failed.
    pub error: io::Error,
}

/// The steps of starting a program, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A guardian, for the case that this process is killed.
    Guard,
    /// Input and outputs.
    Files,
    /// A process.
    Process,
    /// Ending with its parent.
    Tie,
    /// A group of its own.
    Group,
    /// The THP switch.
    Switch,
    /// The CPUs.
    Cpus,
    /// The nodes.
    Nodes,
    /// The program itself.
    Program,
}

impl Step {
    /// Those of the child, which it reports by their place here.
    const OF_CHILD: [Self; 6] = [
        Self::Tie,
        Self::Group,
        Self::Switch,
        Self::Cpus,
        Self::Nodes,
        Self::Program,
    ];

    /// What it is about, for a message.
    pub fn title(self) -> &'static str {
        match self {
            Self::Guard => "a guardian over it",
            Self::Files => "its input and output",
            Self::Process => "a process",
            Self::Tie => "ending with its parent",
            Self::Group => "a process group of its own",
            Self::Switch => "its THP switch (prctl PR_SET_THP_DISABLE)",
            Self::Cpus => "its CPUs",
            Self::Nodes => "its nodes",
            Self::Program => "the program",
        }
    }

    /// Its failure.
    pub fn failed(self, error: impl Into<io::Error>) -> Failure {
        Failure {
            step: self,
            error: error.into(),
        }
    }
}

impl Order<'_> {
    /// Starts it; the program runs when this returns.
    ///
    /// # Errors
    /// The step that failed; nothing is left of it.
    pub(crate) fn start(&self, outputs: &Outputs) -> Result<Started, Failure> {
        let place = Place::free().map_err(|error| Step::Guard.failed(error))?;
        let mut command = self.command(outputs).map_err(|error| Step::Files.failed(error))?;
        let (mut ours, mut theirs) = UnixStream::pair().map_err(|error| Step::Process.failed(error))?;
        let parent = rustix::process::getpid();
        let pid = fork(|| {
            let failure = self.carry_out(&mut command, &place, parent, &mut theirs);
            // The parent is gone if that fails.
            let _ = theirs.write_all(&failure.bytes());
        });
        let pid = pid.map_err(|error| Step::Process.failed(error))?;
        drop(theirs);
        let counters = Attached::to(pid.as_raw_nonzero().get(), self.events).ok();
        let began = Instant::now();
        // Fails if the child has: its report follows.
        let _ = ours.write_all(&[0]);
        match Failure::read(&mut ours) {
            None => Ok(Started {
                pid,
                began,
                place,
                counters,
            }),
            Some(failure) => {
                let _ = wait(pid);
                Err(failure)
            }
        }
    }

    fn command(&self, outputs: &Outputs) -> io::Result<Command> {
        let program = self.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let mut command = Command::new(program);
        command
            .args(self.words.iter().skip(1))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(File::open("/dev/null")?)
            .stdout(outputs.output.try_clone()?)
            .stderr(outputs.errors.try_clone()?);
        for name in self.unset {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// The child's life: becomes the program as soon as the parent lets it, or returns why not.
    fn carry_out(&self, command: &mut Command, place: &Place, parent: Pid, gate: &mut UnixStream) -> Failure {
        match self.set_up(place, parent) {
            Err(failure) => failure,
            Ok(()) => {
                // The counters are attached before the first instruction of the program.
                let _ = gate.read(&mut [0]);
                unblock_signals();
                Step::Program.failed(command.exec())
            }
        }
    }

    fn set_up(&self, place: &Place, parent: Pid) -> Result<(), Failure> {
        tie_to(parent).map_err(|error| Step::Tie.failed(error))?;
        rustix::process::setpgid(None, None).map_err(|error| Step::Group.failed(error))?;
        place.lead();
        switch_thp(self.thp).map_err(|error| Step::Switch.failed(error))?;
        if !self.bound.cpus.is_empty() {
            let cpus = self.bound.cpus.iter().fold(CpuSet::new(), with_cpu);
            rustix::thread::sched_setaffinity(None, &cpus).map_err(|error| Step::Cpus.failed(error))?;
        }
        if !self.bound.nodes.is_empty() {
            let mask = node_mask(&self.bound.nodes);
            bind(&mask, self.bound.interleave).map_err(|error| Step::Nodes.failed(error))?;
        }
        Ok(())
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

impl Failure {
    /// The step and the error number, as a child reports them.
    fn bytes(&self) -> [u8; 5] {
        let step = Step::OF_CHILD
            .iter()
            .position(|step| *step == self.step)
            .unwrap_or_default();
        let [a, b, c, d] = self.error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes();
        [step as u8, a, b, c, d]
    }

    /// What a child reports; `None` if it closed its end, as it does when it executes its program.
    fn read(from: &mut UnixStream) -> Option<Self> {
        let mut bytes = [0; 5];
        from.read_exact(&mut bytes).ok()?;
        let [step, error @ ..] = bytes;
        let step = *Step::OF_CHILD.get(usize::from(step))?;
        Some(step.failed(io::Error::from_raw_os_error(i32::from_ne_bytes(error))))
    }
}
