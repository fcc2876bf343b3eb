//! Latencies, geometry and costs.

pub mod cores;
pub mod guest;
pub mod guest_costs;
pub mod kernelops;
pub mod latency;
pub(crate) mod migration;
pub mod tlb;
