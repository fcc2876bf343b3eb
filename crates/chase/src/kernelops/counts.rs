//! What the kernel counts over stretches that are timed.

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
