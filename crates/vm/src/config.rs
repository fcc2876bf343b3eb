//! What a guest is made of: its memory and its tables.

use model::guest::GuestPage;

use crate::memory::Memory;

/// What a guest is made of.
#[derive(Clone, Copy, Debug)]
pub struct Config<'m> {
    /// The memory its kernels work on, at the same addresses as on the host; `None` for kernels that need none.
    pub memory: Option<Memory<'m>>,
    /// With which pages the guest maps that memory.
    pub page: GuestPage,
    /// Bytes at the beginning of `memory` whose pages look never used in the guest's page tables: each first touch there
    /// is a fault of its own. Beyond, a shadowing hypervisor may fill in adjacent entries, which warms the rest many times faster.
    pub fresh: u64,
    /// Memory for the page tables, best of the same page kind as `memory`, because under nested paging their place
    /// counts too; `None`: the guest's own base pages.
    pub tables: Option<Memory<'m>>,
}
