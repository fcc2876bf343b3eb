//! Page kinds behind processes, and the proof of what backs a range of one's own memory.
//!
//! The order is cheap first: `status` needs no lock, `smaps_rollup` and `smaps` walk the page tables under the
//! process's memory lock.

pub mod areas;
mod file;
mod folios;
mod ground;
mod held;
mod hidden;
mod limits;
mod lines;
mod list;
mod machine;
mod mapping;
mod missed;
mod nodes;
mod once;
mod one;
mod pagemap;
mod proof;
mod reason;
mod scan;
pub mod smaps;
mod stat;
pub mod status;
mod why;

pub use file::file_system;
pub use folios::{mthp_of, own_range_mthp};
pub use ground::Ground;
pub use held::{Held, Holder, HolderKind, held_by_nobody};
pub use hidden::{hidden, unseen};
pub use limits::Limits;
pub use list::list;
pub use mapping::{Counted, Counts, Mapping};
pub use missed::{Missed, Missing};
pub use nodes::{MappingNodes, NodePages, ThpByStart, hugetlb_nodes, nodes};
pub use once::{Coverage, Covering, Sort, is_counted, objects, taken_of_pool};
pub use one::{one, one_within};
pub use pagemap::frames_of;
pub use proof::{Proof, own_range};
pub use reason::Reason;
pub use scan::{large, large_share};
pub use stat::Stat;
pub use why::why_base;
