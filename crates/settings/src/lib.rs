//! The only writer of the machine: every changed setting is journalled, read back, and restored.
//!
//! A measurement that needs hugetlb pages takes a [`PoolLease`] from a [`Writer`], one that needs a THP size a [`ThpLease`]. Every write is in a journal on disk before
//! it reaches the kernel, so that whatever ends the run (success, an error, a panic, SIGKILL), either the lease's `Drop` or
//! [`Writer::recover`] of the next run puts the pools back.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod error;
mod gave_back;
mod journal;
mod lease;
mod line_file;
mod owner;
mod place;
mod pool;
mod pool_setting;
mod reserve;
pub mod setup;
mod sink;
mod state_dir;
mod thp_lease;
mod thp_switch;
mod writer;

/// Readers that nothing outside of this crate needs, for fuzzing.
#[doc(hidden)]
pub mod fuzz {
    /// The journals of a loan and of a plan: read, or refused with a place in the file.
    pub fn journals(bytes: &[u8]) {
        if let Err(error) = crate::journal::parse(bytes, "fuzz") {
            assert!(error.place.starts_with("fuzz:"), "{error}");
        }
        crate::setup::read_any(bytes);
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scene;

pub use error::{LeaseError, WriterError};
pub use gave_back::{GaveBack, Outcome};
pub use lease::PoolLease;
pub use place::{FileState, Place, State};
pub use sink::{LiveSink, Sink};
pub use thp_lease::{ThpLease, ThpSizes};
pub use writer::{Loan, Writer};
