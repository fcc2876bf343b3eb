//! The numbers that every run of a comparison has, and their names.

/// A number that every run has, but for those of hardware counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// From start to end, seconds.
    Wall,
    /// CPU time, user and system, of the program and all that it started, seconds.
    Cpu,
    /// The part of it outside of the kernel, seconds.
    User,
    /// The part of it in the kernel, seconds; with what collapsing its pages from outside took.
    System,
    /// The most memory that it had at once, hugetlb pages included, bytes.
    Memory,
    /// Page faults without input or output.
    Faults,
    /// Page faults that waited for a disk.
    MajorFaults,
    /// Context switches because it waited.
    Waits,
    /// Context switches because others wanted the CPU.
    Preemptions,
    /// Moves from one CPU to another: of all threads where the kernel lets them be counted, else as far as seen.
    Migrations,
    /// Retired instructions; a hardware counter, as are those below.
    Instructions,
    /// Data TLB load misses.
    DtlbMisses,
    /// Data TLB load misses per thousand instructions.
    DtlbMpki,
    /// Cycles in which a page walk was under way.
    WalkCycles,
}

impl Metric {
    /// Those that only hardware counts, so that a run may lack them.
    pub const HARDWARE: [Self; 4] = [Self::Instructions, Self::DtlbMisses, Self::DtlbMpki, Self::WalkCycles];

    /// Does only hardware count it?
    pub fn is_hardware(self) -> bool {
        Self::HARDWARE.contains(&self)
    }
}

crate::names!(Metric, "a metric that every run has", {
    Wall => "wall",
    Cpu => "cpu",
    User => "user",
    System => "system",
    Memory => "memory",
    Faults => "faults",
    MajorFaults => "major-faults",
    Waits => "waits",
    Preemptions => "preemptions",
    Migrations => "migrations",
    Instructions => "instructions",
    DtlbMisses => "dtlb-misses",
    DtlbMpki => "dtlb-mpki",
    WalkCycles => "walk-cycles",
});
