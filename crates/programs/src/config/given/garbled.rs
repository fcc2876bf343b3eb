//! What is wrong with a file that was given: a line of it, or all.

use model::{Cause, Unread};

/// A line, counted from 1, is not what it should be.
pub(super) fn garbled(path: &str, number: usize, seen: &str, wanted: &str) -> Unread {
    host::parse::garbled(path, number.saturating_sub(1), "", wanted, seen)
}

/// Nothing of what the kind is for is in the file.
pub(super) fn empty(path: &str, what: &str) -> Unread {
    Unread::new(Cause::Garbled, path, what)
}
