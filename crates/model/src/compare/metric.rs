//! The numbers that every run of a comparison has, and their names.

crate::names! {
    /// A number that every run has, but for those of hardware counters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Metric, "a metric that every run has" {
        /// From start to end, seconds.
        Wall = "wall",
        /// CPU time, user and system, of the program and all that it started, seconds.
        Cpu = "cpu",
        /// The part of it outside of the kernel, seconds.
        User = "user",
        /// The part of it in the kernel, seconds; with what collapsing its pages from outside took.
        System = "system",
        /// The most memory that it had at once, hugetlb pages included, bytes.
        Memory = "memory",
        /// Page faults without input or output.
        Faults = "faults",
        /// Page faults that waited for a disk.
        MajorFaults = "major-faults",
        /// Context switches because it waited.
        Waits = "waits",
        /// Context switches because others wanted the CPU.
        Preemptions = "preemptions",
        /// Moves from one CPU to another: of all threads where the kernel lets them be counted, else as far as seen.
        Migrations = "migrations",
        /// Retired instructions; a hardware counter, as are those below.
        Instructions = "instructions",
        /// Data TLB load misses.
        DtlbMisses = "dtlb-misses",
        /// Data TLB load misses per thousand instructions.
        DtlbMpki = "dtlb-mpki",
        /// Cycles in which a page walk was under way.
        WalkCycles = "walk-cycles",
    }
}

impl Metric {
    /// Those that only hardware counts, so that a run may lack them.
    pub const HARDWARE: [Self; 4] = [Self::Instructions, Self::DtlbMisses, Self::DtlbMpki, Self::WalkCycles];

    /// Does only hardware count it?
    pub fn is_hardware(self) -> bool {
        Self::HARDWARE.contains(&self)
    }
}
