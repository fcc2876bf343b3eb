//! The results that this program composes itself; the others are in `model` and `host`.

#![warn(missing_docs)]

pub mod checkup;
pub mod diff;
pub mod doctor;
pub mod explain;
#[doc(hidden)]
pub mod kinds;
pub mod mappings;
pub mod ps;
pub mod reach;
pub mod vms;

pub use checkup::{Checkup, Skipped};
pub use diff::Diff;
pub use doctor::{Doctor, Taken};
pub use explain::Explain;
pub use ps::{OneProcess, ProcessList, Totals};
pub use reach::ReachTable;
pub use vms::VmList;
