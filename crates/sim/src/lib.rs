//! Address translation on paper: what TLBs reach, what CPUs are known to have, and TLBs that can be simulated.

pub mod cpus;
pub mod reach;
pub mod tlb;
