//! Address translation simulated access by access: TLBs of any geometry, page walks natively, nested and with shadow paging.
//!
//! Accesses pass through stages in blocks: a filter for repeated pages, each TLB level, then the walks of what missed. All
//! of it is exact for the geometry that it is given; nothing here reads a file or a clock.

mod access;
mod caches;
mod engine;
mod fit;
mod fresh;
mod front;
#[cfg(test)]
mod front_tests;
#[cfg(test)]
mod given;
mod keep;
mod layout;
mod level;
pub mod machine;
pub mod measured;
mod names;
mod nested;
pub mod patterns;
mod radix;
pub(crate) mod random;
mod range;
mod recency;
mod recent;
#[cfg(test)]
mod reference;
mod reuse;
mod scatter;
mod sets;
mod shadow;
mod shards;
pub mod study;
pub mod surface;
mod touch;
pub mod trace;
mod unknown;
mod uses;
mod values;
#[cfg(test)]
mod vcpus_tests;
#[cfg(test)]
mod walk_tests;
mod walker;
mod walker_spec;
#[cfg(test)]
mod walker_tests;
mod walks;

pub use access::{ADDRESS_BITS, Access, Side};
pub use caches::{Cache, PLACES, Shared};
pub use engine::{Accesses, Counts, Engine, Event, Mode, Setup};
pub use fit::Costs;
pub use front::{BLOCK, Front, LevelCounts};
pub use layout::{Backing, Layout, MOST_BACKINGS};
pub use level::{Array, Held};
pub use names::TooSpread;
pub use radix::WalkCaches;
pub use scatter::Scatter;
pub use shadow::Exits;
pub use shards::Shards;
pub use walker::WalkCounts;
pub use walker_spec::WalkerSpec;

pub use crate::ways::Replacement;
