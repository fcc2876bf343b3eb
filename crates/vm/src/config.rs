//! What a guest is made of: its memory, its tables, and more addresses that lead into its memory.

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
    /// More guest addresses that lead into `memory`.
    pub windows: &'m [Window],
}

/// Guest pages in a row that lead into the lent memory in any order, several to one place if wished: they cost page-table
/// entries, no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First virtual address, a multiple of the page size.
    pub virt: u64,
    pub page: GuestPage,
    /// For each page, where in the lent memory it begins: bytes from its start.
    pub frames: Vec<u64>,
}
