//! Latency, TLBs, guests, kernel operations and cores: sweeps that prove what they measured.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod contend;
pub mod cores;
mod error;
pub mod guest;
pub mod kernelops;
pub mod latency;
pub mod migration;
mod proof;
mod rounds;
pub mod tlb;
mod visits;

pub use error::Error;
