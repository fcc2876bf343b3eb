//! What program to start, where it runs, and what is counted of it.

use std::ffi::OsString;
use std::os::fd::RawFd;

use chase::counters::program::Countable;
use model::Bytes;

use crate::rights::ShutIn;
use crate::syscall::ThpSwitch;

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

#[derive(Default)]
pub struct Order<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Variables to set.
    pub env: &'a [(OsString, OsString)],
    /// Variables to leave out.
    pub unset: &'a [String],
    pub thp: ThpSwitch,
    /// The THP size that is told from base pages when its pages are looked at.
    pub thp_size: Option<Bytes>,
    /// Wherever the machine puts it, without one.
    pub bound: Option<&'a Bound>,
    pub events: &'a [Countable],
    /// The CPUs on which its context switches are recorded; empty for no recording.
    pub switches: &'a [u32],
    /// The CPUs on which its time is counted and its moves are recorded; empty for neither.
    pub places: &'a [u32],
    pub output: Output,
    /// What it has in place of what this process has: the user, the session, the environment and all else.
    pub shut_in: Option<&'a ShutIn>,
    /// Descriptors that it inherits all the same.
    pub inherited: &'a [RawFd],
}

/// Where the output of a program goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Into memory, of which the end is kept.
    #[default]
    Kept,
    /// To the standard error of this process.
    Passed,
}

impl<'a> Order<'a> {
    /// The program as it is, with nothing counted and its output kept.
    pub fn plain(words: &'a [OsString]) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }
}
