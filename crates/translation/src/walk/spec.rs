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
    /// Page-walk caches of each dimension.
    pub caches: WalkCaches,
    /// Entries that translate guest page tables' addresses to host ones, fully associative under LRU.
    pub nested_tlb: u32,
    /// Where the guest's base pages lie in its memory; in order without it.
    pub scatter: Option<Scatter>,
    /// Caches that data and page-table lines go through, from the first level on; none counts references only.
    pub data_caches: Vec<Cache>,
    /// How the third cache is filled.
    pub shared: Shared,
    /// Are data lines fetched ahead of streams, into the second cache?
    pub fetches_ahead: bool,
}
