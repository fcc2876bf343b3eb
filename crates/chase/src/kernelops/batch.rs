//! An operation that is set up, its timed batches, and what the kernel counts while one lasts.

use std::io;
use std::ops::Range;

use model::PageKind;

use crate::clock::ticks;
use crate::syscall::usage;

/// A base page.
pub(super) const BASE: usize = PageKind::Base.x86_size().as_usize();

/// One operation, set up and ready.
pub trait Timed {
    /// Does and times as many operations as make a batch; what they need is renewed untimed.
    ///
    /// # Errors
    /// The kernel's refusal, or that an operation did something else than its name says.
    fn batch(&mut self) -> io::Result<Batch>;

    /// The memory whose page kind matters, filled as the timed operations fill it, to be proved.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        Ok(None)
    }
}

impl<F: FnMut() -> io::Result<Batch>> Timed for F {
    fn batch(&mut self) -> io::Result<Batch> {
        self()
    }
}

/// Counts over timed stretches only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Minor faults of this process and of the children it has waited for.
    pub faults: u64,
    /// Signals whose handler ran.
    pub signals: u64,
    pub children: u64,
    /// Voluntary context switches of this process.
    pub switches: u64,
    /// Involuntary ones.
    pub preemptions: u64,
    /// Base pages that became readable or writable; 0 where that is not what it is about.
    pub pages: u64,
}

impl Counts {
    /// What the kernel counts of this thread; faults of children that were waited for are in it.
    fn now() -> Self {
        let (own, children) = (usage(libc::RUSAGE_THREAD), usage(libc::RUSAGE_CHILDREN));
        Self {
            faults: (own.ru_minflt + children.ru_minflt).cast_unsigned(),
            switches: own.ru_nvcsw.cast_unsigned(),
            preemptions: own.ru_nivcsw.cast_unsigned(),
            ..Self::default()
        }
    }

    /// Takes another stretch in.
    pub fn add(&mut self, other: &Self) {
        self.faults += other.faults;
        self.signals += other.signals;
        self.children += other.children;
        self.switches += other.switches;
        self.preemptions += other.preemptions;
        self.pages += other.pages;
    }
}

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
    let before = Counts::now();
    let start = ticks();
    let done = work();
    let ticks = ticks() - start;
    let after = Counts::now();
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
