//! What a comparison needs of the program around it: a way to report what happens, pages and switches on loan, and a file of finished runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::compare::{Because, Forecast, Method, Restored};
use model::{Bytes, PageKind, Progress, Unread};

use crate::Error;
use crate::program::Memory;

/// The program around a comparison.
pub trait Around {
    fn report(&self, event: &Event<'_>);
    /// Shows how far the comparison is.
    fn progress(&self) -> Box<dyn Progress>;
    /// Borrows huge pages for so many bytes of each kind, or the machine's switches for a THP size, and gives what is missing.
    fn borrow(&self, rooms: &[(PageKind, Bytes)]) -> Vec<Shortage>;
    fn give_back(&self);
    /// A file of these bytes that programs of every user can load, for as long as this lives; none where there is no place for it.
    fn library(&self, bytes: &'static [u8]) -> Option<PathBuf>;
}

/// Where the log of finished runs is.
pub trait Store {
    fn name(&self) -> String;
    /// What an earlier session left in it, if that is gone on with.
    fn resumed(&self) -> Option<&str>;
    /// Makes it, or opens it and keeps so many bytes of it.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn open(&mut self, seed: u64, kept: u64) -> Result<(), String>;
    /// Adds a line, in one system call.
    ///
    /// # Errors
    /// If it could not be written.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
    /// Replaces it whole.
    ///
    /// # Errors
    /// If it could not be written; it is then as it was.
    fn replace(&mut self, text: &[u8]) -> io::Result<()>;
    fn remove(&mut self);
}

#[cfg(test)]
impl Around for () {
    fn report(&self, _: &Event<'_>) {}

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(())
    }

    fn borrow(&self, _: &[(PageKind, Bytes)]) -> Vec<Shortage> {
        Vec::new()
    }

    fn give_back(&self) {}

    fn library(&self, _: &'static [u8]) -> Option<PathBuf> {
        None
    }
}

/// Why there are fewer pages of a kind than are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub kind: PageKind,
    pub why: String,
}

/// Lends to a run of an arm what it needs: the settings are the machine's, so that every other program may have such pages, too.
pub(crate) struct Lender<'a> {
    pub(crate) around: &'a dyn Around,
    /// So much for each kind.
    pub(crate) rooms: Vec<(PageKind, Bytes)>,
}

/// On loan until this is dropped.
pub(crate) struct Lent<'a>(Option<&'a dyn Around>);

impl<'a> Lender<'a> {
    /// For one run of an arm that needs these kinds.
    pub(crate) fn lend(&self, kinds: &[PageKind]) -> Lent<'a> {
        let needed: Vec<_> = self
            .rooms
            .iter()
            .filter(|(kind, _)| kinds.contains(kind))
            .copied()
            .collect();
        if needed.is_empty() {
            return Lent(None);
        }
        // What is missing was said when all were tried.
        let _ = self.around.borrow(&needed);
        Lent(Some(self.around))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(around) = self.0 {
            around.give_back();
        }
    }
}

/// What happens in a comparison.
#[derive(Debug)]
pub enum Event<'a> {
    /// The program was found, and how it gets its memory.
    Program {
        path: &'a Path,
        memory: Memory,
    },
    Design {
        method: Method,
        reason: &'a Because,
    },
    /// A run or start that only shows how many pages are needed.
    Needed {
        /// A start of a program that lives on?
        is_start: bool,
    },
    /// The one program of a comparison in place starts.
    StartingOnce,
    /// The program of an arm starts.
    Starting(&'a str),
    /// How an arm gets its pages was found by trial.
    Technique {
        arm: &'a str,
        words: &'a str,
    },
    /// Fewer runs were asked for than a verdict takes.
    FewRuns {
        asked: u32,
        least: u32,
    },
    /// The usual time for all runs is not enough for a verdict, as the first of them show: they take longer.
    ShortTime {
        least: Duration,
        budget: Duration,
    },
    /// What can be seen is more than the smallest effect asked for.
    Forecast {
        /// What takes how long.
        forecast: &'a Forecast,
        /// The time that was asked for.
        budget: Option<Duration>,
    },
    /// The program has not ended for so long.
    StillRuns(Duration),
    /// Whole runs follow, of a program that did not end in another design.
    NeverEnded,
    /// No pages are borrowed for a heap whose size could not be read.
    UnknownHeap(Unread),
    /// A part of the memory of a process is shared, and is not flipped.
    NotFlipped {
        pid: u32,
        flipped: Bytes,
        /// What is not.
        shared: Bytes,
        /// The largest mapping of that.
        name: &'a str,
    },
    /// The program did not stop as it was asked to.
    NotStopped(&'a Error),
    /// How a process that runs on was left, where no result says so: `None` if it has ended.
    Left {
        pid: u32,
        restored: Option<&'a Result<Restored, Error>>,
    },
}
