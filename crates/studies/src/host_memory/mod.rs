//! Machine memory under overcommit, simulated in steps: which pages back virtual machines, what is shared, broken, ballooned and swapped.
//!
//! Memory is kept in 2 MiB regions of each machine, each with counts of its base pages by content and by place, and no page is followed by
//! itself. All amounts are whole pages, and no order of events hangs on floating point: a seed gives the same result on any machine.
//! Nothing here reads a file or a clock.

pub mod advice;
mod content;
mod cost;
mod demand;
mod engine;
pub mod file;
mod frames;
mod kernel;
mod khugepaged;
mod ksmd;
mod lost;
mod machine;
mod policy;
pub mod preset;
mod reclaim;
mod region;
mod result;
mod scenario;
mod share;
mod states;
#[cfg(test)]
mod tests;
mod totals;
mod what_if;

pub use kernel::{Khugepaged, Ksm};
pub use lost::PatternCost;
pub use policy::Policy;
pub use result::{Amounts, HostMemory, Outcome, Sample, VmMemory, simulate};
pub use scenario::{Content, Host, Pages, Rates, Scenario, Translation, Vm};
pub use states::{Edge, Level, States};
pub use totals::Totals;

/// Nanoseconds.
pub type Ns = u64;
/// Bytes of a base page.
pub const PAGE: u64 = 4096;
/// Base pages of a huge page.
pub const PAGES: u32 = 512;
/// Bytes of a huge page.
pub const REGION: u64 = PAGE * PAGES as u64;
