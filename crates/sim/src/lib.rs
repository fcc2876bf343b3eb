//! Address translation on paper: what TLBs reach, what CPUs are known to have, simulated TLBs; and page counts.

pub mod cpus;
pub mod reach;
pub mod size;
pub mod tlb;
