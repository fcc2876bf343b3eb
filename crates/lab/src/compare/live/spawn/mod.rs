//! What the kernel needs to start a program, made ready before there is a child, which must not take memory.

mod syscall;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use chase::counters::program::Countable;
use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::guard::Place;
use crate::compare::place::Bound;
use crate::compare::technique::ThpSwitch;

/// Where programs are without `PATH`, as `execvp` has it.
const USUAL_PATH: &str = "/bin:/usr/bin";
/// Runs what is executable, but no format that the kernel knows: a script without a first line.
const SHELL: &str = "/bin/sh";
/// Nodes that fit a mask here.
const NODES: usize = 1024;

/// What to start, and how.
pub(super) struct Order<'a> {
    /// The program and its arguments.
    pub(super) words: &'a [OsString],
    /// Variables to set.
    pub(super) env: &'a [(OsString, OsString)],
    /// Variables that are not to be there.
    pub(super) unset: &'a [String],
    /// The kernel's switch.
    pub(super) thp: ThpSwitch,
    /// Where it runs.
    pub(super) bound: &'a Bound,
    /// Standard output and error.
    pub(super) outputs: [BorrowedFd<'a>; 2],
    /// What it opens counters for.
    pub(super) events: &'a [Countable],
}

/// A program that runs, or will have to be reaped.
pub(super) struct Started {
    /// Its number, and that of its group.
    pub(super) pid: Pid,
    /// Its handle.
    pub(super) handle: OwnedFd,
    /// It is told to the guardian as long as this lives.
    pub(super) place: Place,
    /// Its counters, in their order, unless one of them could not be opened.
    pub(super) counters: Option<Vec<OwnedFd>>,
}

/// What could not be done, and why.
#[derive(Debug)]
pub(super) struct Failure {
    /// What.
    pub(super) step: Step,
    /// Why.
    pub(super) error: io::Error,
}

/// What is done for a program to run, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A guardian, for the case that this process is killed.
    Guard,
    /// A process.
    Process,
    /// Ending with its parent.
    Tie,
    /// A group of its own.
    Group,
    /// The kernel's switch for transparent pages.
    Switch,
    /// The CPUs.
    Cpus,
    /// The nodes.
    Nodes,
    /// Input and outputs.
    Files,
    /// The program itself.
    Program,
}

impl Step {
    /// What it is about, for a message.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Guard => "a guardian over it",
            Self::Process => "a process",
            Self::Tie => "ending with its parent",
            Self::Group => "a process group of its own",
            Self::Switch => "the switch for transparent pages",
            Self::Cpus => "its CPUs",
            Self::Nodes => "its nodes",
            Self::Files => "its input and output",
            Self::Program => "the program",
        }
    }

    pub(super) fn failed(self, error: impl Into<io::Error>) -> Failure {
        Failure {
            step: self,
            error: error.into(),
        }
    }
}

impl Order<'_> {
    /// Starts it.
    pub(super) fn start(&self) -> Result<Started, Failure> {
        let place = Place::free().map_err(|error| Step::Guard.failed(error))?;
        let input = File::open("/dev/null").map_err(|error| Step::Files.failed(error))?;
        let [output, errors] = self.outputs;
        let openers = self.events.iter().map(|event| event.opener());
        let child = Child {
            image: Image::of(self).map_err(|error| Step::Program.failed(error))?,
            files: [input.as_fd(), output, errors],
            thp: self.thp,
            cpus: (!self.bound.cpus.is_empty()).then(|| self.bound.cpus.iter().fold(CpuSet::new(), with_cpu)),
            nodes: Nodes::of(self.bound),
            counters: openers.map(|open| (open, Cell::new(None))).collect(),
            place: &place,
        };
        let (pid, handle) = child.start()?;
        let counters = child
            .counters
            .into_iter()
            .map(|(_, opened)| opened.into_inner())
            .collect();
        Ok(Started {
            pid,
            handle,
            counters,
            place,
        })
    }
}

/// What a child does, with everything that it needs for it.
struct Child<'a, Open> {
    image: Image,
    /// Standard input, output and error.
    files: [BorrowedFd<'a>; 3],
    thp: ThpSwitch,
    cpus: Option<CpuSet>,
    nodes: Option<Nodes>,
    /// Each is opened by the child and left here for its parent.
    counters: Vec<(Open, Cell<Option<OwnedFd>>)>,
    place: &'a Place,
}

fn with_cpu(mut set: CpuSet, &cpu: &u32) -> CpuSet {
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
    }
    set
}

/// A policy for memory.
struct Nodes {
    interleave: bool,
    mask: [u64; NODES / 64],
}

impl Nodes {
    fn of(bound: &Bound) -> Option<Self> {
        let mut mask = [0; NODES / 64];
        for &node in &bound.nodes {
            if let Some(word) = mask.get_mut(node as usize / 64) {
                *word |= 1 << (node % 64);
            }
        }
        (!bound.nodes.is_empty()).then_some(Self {
            interleave: bound.interleave,
            mask,
        })
    }
}

/// A program with its words and variables.
struct Image {
    /// Where it may be, in this order.
    files: Vec<CString>,
    words: Vec<CString>,
    variables: Vec<CString>,
    shell: CString,
}

impl Image {
    fn of(order: &Order<'_>) -> io::Result<Self> {
        let variables = variables(std::env::vars_os(), order.env, order.unset);
        let name = order.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let path = variables.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let variable = |(name, value): (&OsString, &OsString)| {
            let whole = [name.as_bytes(), value.as_bytes()].join(&b'=');
            CString::new(whole)
        };
        Ok(Self {
            files: files(name, path)?,
            words: order
                .words
                .iter()
                .map(|word| CString::new(word.as_bytes()))
                .collect::<Result<_, _>>()?,
            variables: variables.iter().map(variable).collect::<Result<_, _>>()?,
            shell: CString::new(SHELL)?,
        })
    }
}

/// The last value of each counts; what is to be unset is not there, whoever sets it.
fn variables(
    own: impl Iterator<Item = (OsString, OsString)>,
    set: &[(OsString, OsString)],
    unset: &[String],
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = own.chain(set.iter().cloned()).collect();
    all.retain(|name, _| !unset.iter().any(|unset| name == unset.as_str()));
    all
}

/// Where a program of that name may be.
fn files(name: &OsStr, path: Option<&OsStr>) -> Result<Vec<CString>, std::ffi::NulError> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(name.as_bytes())?]);
    }
    let folders = std::env::split_paths(path.unwrap_or(OsStr::new(USUAL_PATH)));
    folders
        .map(|folder| CString::new(folder.join(name).into_os_string().as_bytes()))
        .collect()
}
