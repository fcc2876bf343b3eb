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
mod warnings;

use std::collections::BTreeSet;

pub use error::Error;

/// Each of them once, in order.
pub(crate) fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    BTreeSet::from_iter(values).into_iter().collect()
}

/// Every two of these CPUs.
pub(crate) fn pairs_of(cpus: &[u32]) -> impl Iterator<Item = [u32; 2]> + '_ {
    cpus.iter()
        .enumerate()
        .flat_map(|(at, &one)| cpus[at + 1..].iter().map(move |&two| [one, two]))
}
