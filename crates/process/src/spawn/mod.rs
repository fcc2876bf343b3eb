//! What the kernel needs to start a program, made ready before there is a child, which must not take memory.

mod syscall;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, NulError, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use chase::counters::program::Countable;
use rustix::process::Pid;
use rustix::thread::CpuSet;

use super::guard::Place;

/// Where programs are without `PATH`, as `execvp` has it.
const USUAL_PATH: &str = "/bin:/usr/bin";
/// Runs what is executable, but no format that the kernel knows: a script without a first line.
const SHELL: &str = "/bin/sh";
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

/// The kernel's switch for the transparent pages of one process and its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThpSwitch {
    /// As it is.
    #[default]
    Left,
    /// Off.
    Off,
    /// Off but for memory that asked for it.
    ExceptAdvised,
}

/// What to start, and how.
pub struct Order<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Variables to set.
    pub env: &'a [(OsString, OsString)],
    /// Variables that are not to be there.
    pub unset: &'a [String],
    /// The kernel's switch.
    pub thp: ThpSwitch,
    /// Where it runs.
    pub bound: &'a Bound,
    /// Standard output and error.
    pub outputs: [BorrowedFd<'a>; 2],
    /// What it opens counters for.
    pub events: &'a [Countable],
}

/// A program that runs, or will have to be reaped.
pub(crate) struct Started {
    /// Its number, and that of its group.
    pub(crate) pid: Pid,
    /// It is told to the guardian as long as this lives.
    pub(crate) place: Place,
    /// Its counters, in their order, unless one of them could not be opened.
    pub(crate) counters: Option<Vec<OwnedFd>>,
}

/// What could not be done, and why.
#[derive(Debug)]
pub struct Failure {
    /// What.
    pub step: Step,
    /// Why.
    pub error: io::Error,
}

/// What is done for a program to run, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
    pub fn title(self) -> &'static str {
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

    /// That it could not be done.
    pub fn failed(self, error: impl Into<io::Error>) -> Failure {
        Failure {
            step: self,
            error: error.into(),
        }
    }
}

impl Order<'_> {
    /// Starts it.
    ///
    /// # Errors
    /// The step that failed; nothing is left of it.
    pub(crate) fn start(&self) -> Result<Started, Failure> {
        let place = Place::free().map_err(|error| Step::Guard.failed(error))?;
        let input = nothing().map_err(|error| Step::Files.failed(error))?;
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
        let pid = child.start()?;
        let counters = child
            .counters
            .into_iter()
            .map(|(_, opened)| opened.into_inner())
            .collect();
        Ok(Started { pid, counters, place })
    }
}

/// What every program reads; opened once.
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    match NOTHING.get() {
        Some(file) => Ok(file),
        None => File::open("/dev/null").map(|file| NOTHING.get_or_init(|| file)),
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
    variables: Vec<Cow<'static, CStr>>,
    shell: CString,
}

impl Image {
    fn of(order: &Order<'_>) -> io::Result<Self> {
        let set: BTreeMap<&OsStr, &OsStr> = order
            .env
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
            .filter(|(name, _)| !is_among(order.unset, name))
            .collect();
        let name = order.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let words = order.words.iter().map(|word| CString::new(word.as_bytes()));
        Ok(Self {
            files: files(name, path(&set, order.unset).as_deref())?,
            words: words.collect::<Result<_, _>>()?,
            variables: variables(own(), &set, order.unset)?,
            shell: CString::new(SHELL)?,
        })
    }
}

/// By name, as the kernel takes them.
type Variables = BTreeMap<OsString, CString>;

/// The variables of this process, which does not change them: most programs get all of them, each time.
fn own() -> &'static Variables {
    static OWN: OnceLock<Variables> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = std::env::vars_os();
        let pairs = own.filter_map(|(name, value)| pair(&name, &value).ok().map(|pair| (name, pair)));
        pairs.collect()
    })
}

fn pair(name: &OsStr, value: &OsStr) -> Result<CString, NulError> {
    CString::new([name.as_bytes(), value.as_bytes()].join(&b'='))
}

fn is_among(names: &[String], name: &OsStr) -> bool {
    names.iter().any(|one| name == one.as_str())
}

/// What is set stands for what this process has, and what is to be unset is not there.
fn variables<'own>(
    own: &'own Variables,
    set: &BTreeMap<&OsStr, &OsStr>,
    unset: &[String],
) -> Result<Vec<Cow<'own, CStr>>, NulError> {
    let kept = own
        .iter()
        .filter(|(name, _)| !set.contains_key(name.as_os_str()) && !is_among(unset, name))
        .map(|(_, pair)| Ok(Cow::Borrowed(pair.as_c_str())));
    let set = set.iter().map(|(name, value)| pair(name, value).map(Cow::Owned));
    kept.chain(set).collect()
}

/// Where the program itself would look for programs.
fn path(set: &BTreeMap<&OsStr, &OsStr>, unset: &[String]) -> Option<OsString> {
    let name = OsStr::new("PATH");
    match set.get(name) {
        Some(path) => Some((*path).to_owned()),
        None => std::env::var_os(name).filter(|_| !is_among(unset, name)),
    }
}

/// Where a program of that name may be.
fn files(name: &OsStr, path: Option<&OsStr>) -> Result<Vec<CString>, NulError> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(name.as_bytes())?]);
    }
    let folders = std::env::split_paths(path.unwrap_or(OsStr::new(USUAL_PATH)));
    folders
        .map(|folder| CString::new(folder.join(name).into_os_string().as_bytes()))
        .collect()
}
