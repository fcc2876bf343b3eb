//! Page kinds behind processes, and the proof of what backs a range of one's own memory.
//!
//! The order is cheap first: `status` needs no lock, `smaps_rollup` and `smaps` walk the page tables under the
//! process's memory lock.

mod folios;
mod lines;
mod list;
mod machine;
mod one;
pub mod pagemap;
mod proof;
mod scan;
pub mod smaps;
pub mod status;
mod why;

pub use folios::{FolioSample, own_range_mthp};
pub use list::{ListOptions, Processes, Totals, list};
pub use one::{mappings, one};
pub use proof::{Proof, own_range};
pub use why::{Reason, why_base};
