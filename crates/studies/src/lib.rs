//! What publications did, on paper: simulated host memory and schedulers, presets of address translation, and calculators, each beside its published figures.
//!
//! Nothing here reads a file or a clock.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod claims;
pub mod host_memory;
pub mod paging;
pub mod scheduler;
pub mod size;
mod tables;
