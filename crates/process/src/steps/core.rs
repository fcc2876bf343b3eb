//! How long the instructions of a window take on an out-of-order core, if all loads hit the first-level cache.

use super::branches::Branches;
use super::operands::{Next, Touch};
use super::timeline::{NARROW, Timeline, WIDE};

/// Time of a window's instructions on two cores that differ as server cores of the last years do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// On a recent core: six instructions a cycle, 512 in flight.
    pub wide: Cycles,
    /// On a core of about 2017: four instructions a cycle, 224 in flight.
    pub narrow: Cycles,
    /// Branches that were mispredicted. One that was not seen before is not counted.
    pub mispredicted: u64,
}

/// Core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// With the mispredicted branches.
    pub all: u64,
    /// If no branch is mispredicted.
    pub predicted: u64,
}

/// The cores, while a window runs.
pub(super) struct Cores<'a> {
    flushed: [Timeline; 2],
    predicted: [Timeline; 2],
    branches: &'a mut Branches,
    mispredicted: u64,
    /// The address behind the last instruction.
    behind: u64,
}

impl<'a> Cores<'a> {
    pub(super) fn new(branches: &'a mut Branches) -> Self {
        branches.begin();
        Self {
            flushed: [WIDE, NARROW].map(Timeline::new),
            predicted: [WIDE, NARROW].map(Timeline::new),
            branches,
            mispredicted: 0,
            behind: 0,
        }
    }

    /// The instruction at an address, which is the next one in program order, with its accesses.
    pub(super) fn take(&mut self, at: u64, next: &Next, touched: &[Touch]) {
        if self.branches.went(at) {
            self.mispredicted += 1;
            self.flushed.iter_mut().for_each(Timeline::flush);
        }
        for timeline in self.flushed.iter_mut().chain(&mut self.predicted) {
            if next.is_another {
                timeline.repeat(&next.flow, touched);
            } else {
                timeline.fetch(at, at == self.behind);
                timeline.take(&next.flow, touched);
            }
        }
        self.behind = next.behind;
        self.branches.runs(at, next.behind, next.flow.branch);
    }

    pub(super) fn so_far(&self) -> Core {
        let cycles = |place: usize| Cycles {
            all: self.flushed[place].cycles(),
            predicted: self.predicted[place].cycles(),
        };
        Core {
            wide: cycles(0),
            narrow: cycles(1),
            mispredicted: self.mispredicted,
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
