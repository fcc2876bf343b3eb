//! The words of hugewise: units, page kinds, readings, and the shapes of results. No I/O happens here.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod address;
mod as_text;
mod backing;
mod bytes;
pub mod collapse;
mod collector;
pub mod compare;
pub mod cores;
mod envelope;
mod estimate;
pub mod findings;
pub mod gc;
pub mod guest;
pub mod headline;
pub mod kernelops;
pub mod latency;
pub mod migration;
mod not_measured;
mod page;
pub mod placement;
pub mod plan;
pub mod process;
mod progress;
mod reading;
pub mod setup;
pub mod sizing;
pub mod suite;
pub mod texts;
pub mod tlb;
pub mod verdict;
pub mod vms;
mod warning;
mod words;

pub use address::Address;
pub use backing::Backing;
pub use bytes::Bytes;
pub use collector::Collector;
pub use envelope::{Envelope, Machine, Tool};
pub use estimate::Estimate;
pub use not_measured::NotMeasured;
pub use page::PageKind;
pub use progress::{Progress, time_left};
pub use reading::{Cause, Reading, Unread};
pub use warning::Warning;
pub use words::{counted, line_of};
