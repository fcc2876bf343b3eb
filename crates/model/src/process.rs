//! Page kinds behind processes, as `ps` reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Address, Backing, Bytes, Reading};

/// One process and what backs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessPages {
    /// Process id.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// Owner's user id.
    pub uid: Reading<u32>,
    /// Resident memory including hugetlb pages, which the kernel's own RSS leaves out.
    pub resident: Reading<Bytes>,
    /// Resident memory that other processes may map, too, without files on a disk: shmem, and hugetlb pages in shared mappings.
    pub shared: Reading<Bytes>,
    /// The kernel's RSS, without hugetlb.
    pub rss: Reading<Bytes>,
    /// hugetlb pages of all sizes.
    pub hugetlb: Reading<Bytes>,
    /// Page tables.
    pub page_tables: Reading<Bytes>,
    /// Resident bytes by page kind. mTHP needs root (kpageflags); without it those bytes count as base.
    pub backing: Reading<Backing>,
    /// `false` when the process or an ancestor disabled THP for itself.
    pub thp_enabled: Reading<bool>,
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MappingPages {
    /// First address, in hex.
    pub start: Address,
    /// One past the last address, in hex.
    pub end: Address,
    /// Permissions as in /proc/PID/maps.
    pub perms: String,
    /// File or `[heap]`, `[stack]`, empty for anonymous memory.
    pub name: String,
    /// Size of the mapping.
    pub size: Bytes,
    /// Resident bytes by page kind.
    pub backing: Backing,
    /// The kernel's `THPeligible`: may THP be used here?
    pub thp_eligible: Option<bool>,
    /// The kernel's two-letter flags (`hg` advised, `nh` refused, `ht` hugetlb, ...).
    pub flags: Vec<String>,
}
