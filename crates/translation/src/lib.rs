//! Address translation simulated access by access: TLBs of any geometry, page walks natively, nested and with shadow paging.
//!
//! Accesses pass through stages in blocks: a filter for repeated pages, each TLB level, then the walks of what missed. All
//! of it is exact for the geometry that it is given; nothing here reads a file or a clock.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access;
pub mod cpus;
mod engine;
pub mod machine;
pub mod patterns;
pub mod random;
mod range;
pub mod reach;
mod reuse;
mod setting;
pub mod study;
mod tlb;
pub mod toml_file;
#[cfg(test)]
mod vcpus_tests;
mod walk;

pub use access::{ADDRESS_BITS, Access, Side};
pub use engine::{Accesses, BLOCK, Counts, Engine, Event};
pub use reuse::shards::Shards;
pub use setting::Mode;
pub use tlb::level::{Array, Held, LevelCounts};
pub use walk::caches::{Cache, PLACES, SHARED, Shared};
pub use walk::radix::WalkCaches;
pub use walk::scatter::Scatter;
pub use walk::shadow::Exits;
pub use walk::spec::WalkerSpec;
pub use walk::walker::WalkCounts;
