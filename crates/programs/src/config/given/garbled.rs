//! What is wrong with a file that was given: a line of it, or all.

use model::{Cause, Unread};

/// A line, counted from 1, is not what it should be.
pub(super) fn garbled(path: &str, number: usize, seen: &str, wanted: &str) -> Unread {
    host::parse::garbled(path, number.saturating_sub(1), "", wanted, seen)
}

/// What the program that reads a file refuses of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub unread: Unread,
    /// How it takes the file.
    pub fix: String,
    /// The program's own documentation.
    pub link: &'static str,
}

impl Refusal {
    pub(super) fn new(place: &str, why: impl Into<String>, fix: impl Into<String>, link: &'static str) -> Self {
        Self {
            unread: Unread::new(Cause::Garbled, place, why),
            fix: fix.into(),
            link,
        }
    }
}

/// Nothing of what the kind is for is in the file.
pub(super) fn empty(path: &str, what: &str) -> Unread {
    Unread::new(Cause::Garbled, path, what)
}
