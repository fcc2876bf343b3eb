//! Cells about memory and page kinds, for tables of processes, groups and VMs.

use model::{Backing, Bytes, PageKind};

use draw::axis::number;
use draw::words::or_empty;

/// The share backed by huge pages in percent; empty if no resident memory is known.
pub(crate) fn share(backing: Option<&Backing>) -> String {
    let share = backing.and_then(Backing::coverage);
    or_empty(share.map(|share| number(share * 100.0)))
}

/// Nothing is blank: a table of zeros hides the few numbers that matter.
pub(crate) fn amount(bytes: Bytes) -> String {
    if bytes.0 == 0 { String::new() } else { bytes.to_string() }
}

/// Nothing where there is no memory.
pub(super) fn kinds_in_words(backing: &Backing) -> String {
    or_empty((backing.total().0 > 0).then_some(backing))
}

pub(super) fn kinds_of(backing: &Backing) -> Vec<PageKind> {
    backing.iter().map(|(kind, _)| kind).collect()
}
