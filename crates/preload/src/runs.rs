//! Walks a range as pieces: parts of hugetlb pages given to the program, and whatever lies between.

use core::ops::Range;

use crate::frames;

/// A piece of a range that crosses no border of a PMD range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) range: Range<usize>,
    /// The hugetlb page that it is a part of.
    pub(crate) frame: Option<Range<usize>>,
}

impl Run {
    /// Is it a whole page?
    pub(crate) fn is_whole(&self) -> bool {
        self.frame.as_ref() == Some(&self.range)
    }
}

/// The pieces of a range, in ascending order.
pub(crate) fn runs(range: &Range<usize>) -> impl Iterator<Item = Run> {
    let Range { start: mut at, end } = *range;
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let frame = frames::around(at);
        let border = frame
            .as_ref()
            .map_or_else(|| frames::next_border(at), |frame| frame.end);
        let range = at..border.min(end);
        at = range.end;
        Some(Run { range, frame })
    })
}
