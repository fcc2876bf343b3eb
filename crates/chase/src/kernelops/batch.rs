//! A timed batch, and what the kernel counted while it lasted.

use std::io;

use super::counts::Counts;
use crate::clock::ticks;
use crate::syscall::usage;

/// Operations timed in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub operations: u64,
    /// Ticks of the time stamp counter they took together.
    pub ticks: u64,
    /// What was counted during the batch.
    pub counts: Counts,
}

/// Times `work`, which does that many operations. The kernel counters are read outside of the timed stretch.
pub(super) fn timed(operations: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<Batch> {
    let before = usage();
    let start = ticks();
    let done = work();
    let ticks = ticks() - start;
    let after = usage();
    done?;
    let counts = Counts {
        faults: after.faults - before.faults,
        switches: after.switches - before.switches,
        preemptions: after.preemptions - before.preemptions,
        ..Counts::default()
    };
    Ok(Batch {
        operations,
        ticks,
        counts,
    })
}
