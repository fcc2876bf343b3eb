//! What a walker is made of, as a machine or a caller describes it.

use crate::walk::caches::{Cache, Shared};
use crate::walk::radix::WalkCaches;
use crate::walk::scatter::Scatter;

/// What a walker is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkerSpec {
    /// Levels of the guest's table, or of the only one: 4 or 5.
    pub levels: u8,
    pub host_levels: u8,
    /// Page-walk caches of the guest's or only dimension.
    pub caches: WalkCaches,
    /// Those of the host's dimension.
    pub host_caches: WalkCaches,
    /// Entries that translate guest page tables' addresses to host ones, fully associative under LRU.
    pub nested_tlb: u32,
    /// Where the guest's base pages lie in its memory; in order without it.
    pub scatter: Option<Scatter>,
    /// Data caches that page-table lines go through, from the first level on; none counts references only.
    pub data_caches: Vec<Cache>,
    /// Do data lines go through them, too?
    pub with_data: bool,
    /// How the third cache is filled.
    pub shared: Shared,
}
