//! Allocators that stand in for glibc's own, by the files that a process mapped.

use std::collections::BTreeSet;

use super::{Area, areas};

/// An allocator with settings of its own for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Allocator {
    /// jemalloc: `MALLOC_CONF=thp:always,metadata_thp:auto`.
    Jemalloc,
    /// Google's, of gperftools or by itself: `TCMALLOC_MEMFS_MALLOC_PATH`.
    Tcmalloc,
    /// Microsoft's mimalloc: `MIMALLOC_ALLOW_LARGE_OS_PAGES`.
    Mimalloc,
    /// musl's, which never requests huge pages.
    Musl,
    /// libhugetlbfs: `HUGETLB_MORECORE`.
    Libhugetlbfs,
    /// Intel's tbbmalloc: `TBB_MALLOC_USE_HUGE_PAGES`.
    Tbbmalloc,
}

/// Beginnings of file names.
const FILES: [(&str, Allocator); 7] = [
    ("libjemalloc", Allocator::Jemalloc),
    ("libtcmalloc", Allocator::Tcmalloc),
    ("libmimalloc", Allocator::Mimalloc),
    ("ld-musl-", Allocator::Musl),
    ("libc.musl-", Allocator::Musl),
    ("libhugetlbfs", Allocator::Libhugetlbfs),
    ("libtbbmalloc", Allocator::Tbbmalloc),
];

impl Allocator {
    /// All that are mapped, each once.
    pub(super) fn all_in(areas: &[Area]) -> Vec<Self> {
        let found: BTreeSet<Self> = areas::known_files(areas, &FILES).collect();
        found.into_iter().collect()
    }

    /// Its name for users.
    pub fn title(self) -> &'static str {
        match self {
            Self::Jemalloc => "jemalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
            Self::Musl => "musl",
            Self::Libhugetlbfs => "libhugetlbfs",
            Self::Tbbmalloc => "tbbmalloc",
        }
    }
}
