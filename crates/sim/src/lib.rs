//! On paper: what TLBs reach, what CPUs are known to have, simulated TLBs, page counts, and simulated schedulers and host memory.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cpus;
pub mod host_memory;
mod names;
pub mod pipeline;
pub mod reach;
pub mod scheduler;
pub mod size;
pub mod translation;
pub mod typed_file;
pub mod ways;
