//! Where programs run: recordings of residency and moves, what differs between two of them, and what is pinned wrongly.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod collector;
mod diff;
mod kernel;
mod ledger;
mod mistakes;
mod poll;
mod record;
mod recorder;
mod slices;

pub use collector::{Collector, MOST_CPUS};
pub use diff::{Runs, diff};
pub use mistakes::check;
pub use record::{Error, Ordered, Spec, record};
