//! Memory of one page kind: asked for, populated, and honest about what could not be had.

use std::io;

use model::{Bytes, PageKind};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};

use crate::syscall::Mapping;

#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub kind: PageKind,
    /// How much; rounded up to whole pages of the kind.
    pub bytes: Bytes,
    /// Bind to this NUMA node.
    pub node: Option<u32>,
}

/// Why memory of a kind was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum NotObtained {
    /// The pool has too few free pages.
    #[error("the {} pool has too few free pages for {bytes}; fill it (vm.nr_hugepages) or allow surplus (vm.nr_overcommit_hugepages)", PageKind::Hugetlb(*.page))]
    PoolShort {
        /// Page size of the pool.
        page: Bytes,
        bytes: Bytes,
    },
    /// The kernel has no pool of that size.
    #[error("this kernel has no pool of {} pages", .page.exact())]
    NoPool {
        /// Page size asked for.
        page: Bytes,
    },
    /// Memory could not be mapped.
    #[error("{bytes} of memory could not be mapped: {source}")]
    Map {
        bytes: Bytes,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Pages could not be brought in: out of memory, or a limit of the control group.
    #[error(
        "{bytes} of {kind} memory could not be populated: {source} (out of memory, or a limit of its control group)"
    )]
    Populate {
        kind: PageKind,
        bytes: Bytes,
        /// The kernel's answer.
        source: io::Error,
    },
    #[error("stopped while memory was taken")]
    Stopped,
    /// The NUMA node cannot be used.
    #[error("memory could not be bound to NUMA node {node}: {source}; `lscpu` lists the nodes")]
    Bind {
        node: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Memory is brought in piece by piece: so much takes about a tenth of a second where it is slow.
const PIECE: Bytes = Bytes::mib(64);

/// A populated piece of memory that asked for one page kind. What backs it must still be proved by smaps or PAGEMAP_SCAN.
#[derive(Debug)]
pub struct Arena {
    map: Mapping,
    offset: usize,
    len: usize,
    /// Is it locked in memory? A normal user's limit may not allow it.
    pub is_locked: bool,
}

impl Want {
    /// Wants `bytes` of a kind, on any node.
    pub fn plain(kind: PageKind, bytes: Bytes) -> Self {
        Self {
            kind,
            bytes,
            node: None,
        }
    }
}

impl Arena {
    /// Maps, advises, binds, populates and (where allowed) locks memory of the kind.
    ///
    /// # Errors
    /// [`NotObtained`] says what the kernel refused. Transparent kinds never fail for lack of huge pages: the kernel falls
    /// back in silence, which is why the backing has to be proved afterwards.
    pub fn new(want: &Want) -> Result<Self, NotObtained> {
        Self::watched(want, &mut |_| true)
    }

    /// The same in pieces: bringing memory in can take many seconds, above all in a VM whose host took free memory back.
    /// `go_on` receives the bytes of each piece and may end it.
    ///
    /// # Errors
    /// As for [`Arena::new`], and [`NotObtained::Stopped`].
    pub fn watched(want: &Want, go_on: &mut dyn FnMut(Bytes) -> bool) -> Result<Self, NotObtained> {
        let mut arena = Self::map(want)?;
        arena.advise(want);
        if let Some(node) = want.node {
            arena
                .map
                .bind(arena.offset, arena.len, node)
                .map_err(|source| NotObtained::Bind { node, source })?;
        }
        let piece = PIECE.max(want.kind.x86_size()).as_usize();
        for start in (0..arena.len).step_by(piece) {
            let len = piece.min(arena.len - start);
            arena.populate(want, start, len)?;
            if !go_on(Bytes(len as u64)) {
                return Err(NotObtained::Stopped);
            }
        }
        arena.is_locked = arena.map.lock(arena.offset, arena.len).is_ok();
        Ok(arena)
    }

    /// Maps and advises only: the pages come when they are touched.
    ///
    /// # Errors
    /// As for [`Arena::new`].
    pub(crate) fn untouched(want: &Want) -> Result<Self, NotObtained> {
        let arena = Self::map(want)?;
        arena.advise(want);
        Ok(arena)
    }

    /// Gives all pages back to the kernel; the next touch brings new ones of zeros.
    pub(crate) fn discard(&mut self) -> io::Result<()> {
        self.map.advise(self.offset, self.len, Advice::LinuxDontNeed)
    }

    fn map(want: &Want) -> Result<Self, NotObtained> {
        let page = want.kind.x86_size();
        let len = want.bytes.round_up_to(page).as_usize();
        let failed = |source: io::Error| match (want.kind.pool(), source.raw_os_error().map(Errno::from_raw_os_error)) {
            (Some(page), Some(Errno::NOMEM)) => NotObtained::PoolShort {
                page,
                bytes: want.bytes,
            },
            (Some(page), Some(Errno::INVAL | Errno::NOENT)) => NotObtained::NoPool { page },
            _ => NotObtained::Map {
                bytes: want.bytes,
                source,
            },
        };
        let (map, offset) = match want.kind.pool() {
            Some(pool) => {
                // The page size's logarithm stands in the flags from bit 26 on (mmap(2), MAP_HUGE_SHIFT).
                let size = MapFlags::from_bits_retain(pool.0.trailing_zeros() << 26);
                let map = Mapping::anonymous(len, MapFlags::HUGETLB | size).map_err(failed)?;
                (map, 0)
            }
            None => {
                // Every kind begins on a PMD border: equal for all, and some CPUs guess the cache way from a hash of the address
                // (AMD since Zen), in which only pages on both sides of such a border can collide.
                let border = page.max(PageKind::Thp.x86_size()).as_usize();
                let map = Mapping::anonymous(len + border, MapFlags::NORESERVE).map_err(failed)?;
                let offset = map.start().align_offset(border);
                (map, offset)
            }
        };
        Ok(Self {
            map,
            offset,
            len,
            is_locked: false,
        })
    }

    /// Transparent kinds are asked for by advice. A kernel without THP refuses it, and base pages remain.
    fn advise(&self, want: &Want) {
        let _ = match want.kind {
            PageKind::Base => self.map.advise(self.offset, self.len, Advice::LinuxNoHugepage),
            PageKind::Thp => self.map.advise(self.offset, self.len, Advice::LinuxHugepage),
            PageKind::Mthp(size) => self.advise_mthp(size),
            PageKind::Hugetlb(_) => Ok(()),
        };
    }

    /// The kernel takes the largest enabled size that fits into the mapping. So that it takes just `size`, every second
    /// piece of that size gets a harmless flag of its own (not inherited by children): pieces become mappings, and nothing
    /// larger fits. Beyond 30,000 pieces the kernel's limit on mappings comes near, and pieces grow.
    fn advise_mthp(&self, size: Bytes) -> io::Result<()> {
        const MOST_PIECES: usize = 30_000;
        self.map.advise(self.offset, self.len, Advice::LinuxHugepage)?;
        let mut piece = size.as_usize();
        while self.len / piece > MOST_PIECES {
            piece *= 2;
        }
        for start in (0..self.len).step_by(2 * piece) {
            self.map
                .advise(self.offset + start, piece.min(self.len - start), Advice::LinuxDontFork)?;
        }
        Ok(())
    }

    fn populate(&mut self, want: &Want, start: usize, len: usize) -> Result<(), NotObtained> {
        match self.map.advise(self.offset + start, len, Advice::LinuxPopulateWrite) {
            Ok(()) => Ok(()),
            // Before Linux 5.14.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.map
                    .touch(self.offset + start, len, PageKind::Base.x86_size().as_usize());
                Ok(())
            }
            Err(source) => Err(NotObtained::Populate {
                kind: want.kind,
                bytes: want.bytes,
                source,
            }),
        }
    }

    /// First byte.
    pub fn start(&mut self) -> *mut u8 {
        // SAFETY: `offset` lies inside the mapping by construction.
        unsafe { self.map.start().add(self.offset) }
    }

    /// Address of the first byte, to look it up in smaps or PAGEMAP_SCAN.
    pub fn address(&self) -> usize {
        self.map.start() as usize + self.offset
    }

    /// Addresses of its bytes.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.address()..self.address() + self.len
    }

    /// Usable bytes.
    pub fn size(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::{Arena, NotObtained, Want};
    use model::{Bytes, PageKind};

    #[test]
    fn transparent_arenas_begin_on_their_page_border_and_are_whole_pages() {
        for kind in [PageKind::Base, PageKind::Thp, PageKind::Mthp(Bytes::kib(64))] {
            let want = Want::plain(kind, Bytes::kib(300));
            let mut arena = Arena::new(&want).expect("a little memory");
            let page = want.kind.x86_size().as_usize();
            assert_eq!(arena.address() % page, 0);
            assert_eq!(arena.size() % page, 0);
            assert!(arena.size() >= 300 << 10);
            let len = arena.size();
            // SAFETY: the last byte of an arena we own.
            unsafe { arena.start().add(len - 1).write(1) };
        }
    }

    #[test]
    fn whoever_watches_hears_of_every_piece_and_may_end_it() {
        let want = Want::plain(PageKind::Base, Bytes::mib(130));
        let mut pieces = Vec::new();
        let arena = Arena::watched(&want, &mut |bytes| {
            pieces.push(bytes.0 >> 20);
            true
        });
        assert_eq!(arena.expect("some memory").size(), 130 << 20);
        assert_eq!(pieces, [64, 64, 2]);
        let ended = Arena::watched(&want, &mut |_| false);
        assert!(matches!(ended, Err(NotObtained::Stopped)));
    }

    #[test]
    fn an_impossible_pool_is_named() {
        let want = Want::plain(PageKind::Hugetlb(Bytes::kib(8)), Bytes::mib(1));
        let error = Arena::new(&want).expect_err("no kernel has 8K pools");
        assert!(matches!(error, NotObtained::NoPool { .. }), "{error:?}");
        let want = Want::plain(PageKind::HUGETLB_2M, Bytes::gib(1 << 14));
        let error = Arena::new(&want).expect_err("no pool has 16 TiB");
        assert!(
            error.to_string().contains("hugetlb-2M") || matches!(error, NotObtained::NoPool { .. }),
            "{error}"
        );
    }
}
