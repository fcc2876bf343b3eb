//! Virtual CPUs on SMT and NUMA hosts, simulated event by event: who runs where, who waits, and what moves cost.
//!
//! Time is whole nanoseconds, and rates are whole parts of 65,536: no order of events hangs on floating point, so that a seed gives the
//! same result on any machine. Nothing here reads a file or a clock.

mod accounts;
mod agenda;
mod begin;
mod chance;
mod coschedule;
mod cpus;
mod engine;
pub mod explain;
mod explained;
mod fairness;
pub mod file;
mod fit;
mod lanes;
mod nodes;
mod place;
mod policy;
mod published;
mod rates;
mod reserve;
mod result;
mod scenario;
#[cfg(test)]
mod tests;
mod topology;
mod world;

pub use policy::Policy;
pub use reserve::{Denied, Reservation};
pub use result::{CpuTime, Fairness, Residency, Schedule, Slice, VmTime, Waits, simulate};
pub use scenario::{Costs, Demand, Idle, Load, MOST_WORLDS, Scenario, Vm};
pub use topology::{MOST_CPUS, Topology};

/// Nanoseconds.
pub type Ns = u64;
