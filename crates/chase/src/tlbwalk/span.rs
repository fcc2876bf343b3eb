//! Sparse ranges of virtual pages of one kind: reserved, brought in word by word, and proved.

use std::io;

use model::{Bytes, PageKind};
use rustix::fs::MemfdFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::prove::{Proof, present, prove, scanned};
use crate::syscall::Mapping;

/// What lies behind the pages of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Memory of their own, brought in page by page as it is visited.
    Private,
    /// One and the same physical page: the (huge) zero page, or one page of a hugetlb pool.
    OnePage,
}

/// A sparse range of virtual pages of one kind, aligned to its own size.
#[derive(Debug)]
pub struct Span {
    whole: Mapping,
    /// Where it begins in that.
    offset: usize,
    page: Bytes,
    pages: u64,
    pub(super) behind: Behind,
}

impl Span {
    /// Reserves `pages` pages of `kind`, one at least. Nothing is brought in yet, except that pages of a pool which all are one
    /// page are mapped one by one.
    ///
    /// # Errors
    /// If address space is short, a pool has no free page, or the kernel has no such kind.
    pub fn reserve(kind: PageKind, pages: u64, behind: Behind) -> io::Result<Self> {
        let (page, pages) = (kind.x86_size(), pages.max(1));
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "more pages than address space");
        let len = page.0.checked_mul(pages).ok_or_else(too_large)?;
        // Aligned to its own size, so that hashes of page numbers are the same for the whole range but for a constant.
        let align = len.checked_next_power_of_two().ok_or_else(too_large)?;
        let whole_len = usize::try_from(len.checked_add(align).ok_or_else(too_large)?).map_err(|_| too_large())?;
        let writable = if behind == Behind::Private {
            ProtFlags::WRITE
        } else {
            ProtFlags::empty()
        };
        let whole = Mapping::protected(whole_len, ProtFlags::READ | writable, MapFlags::NORESERVE)?;
        let span = Self {
            // The mapping is `align` longer than needed, so the aligned start and `len` bytes lie inside.
            offset: whole.start().align_offset(align as usize),
            whole,
            page,
            pages,
            behind,
        };
        span.give(kind)?;
        Ok(span)
    }

    pub(super) fn start(&self) -> *mut u8 {
        // SAFETY: `offset` lies inside the mapping by construction.
        unsafe { self.whole.start().add(self.offset) }
    }

    pub(super) fn len(&self) -> usize {
        (self.page.0 * self.pages) as usize
    }

    fn give(&self, kind: PageKind) -> io::Result<()> {
        let advice = match (kind, self.behind) {
            (PageKind::Base, _) => Advice::LinuxNoHugepage,
            (PageKind::Thp | PageKind::Mthp(_), _) => Advice::LinuxHugepage,
            (PageKind::Hugetlb(_), Behind::OnePage) => return self.map_one_pool_page(),
            (PageKind::Hugetlb(_), Behind::Private) => return self.map_pool_pages(),
        };
        // A kernel without THP refuses the advice; base pages remain, which `large_share` shows.
        let _ = self.whole.advise(self.offset, self.len(), advice);
        Ok(())
    }

    fn map_pool_pages(&self) -> io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::FIXED | self.size_flag();
        // SAFETY: replaces pages of a mapping we own and nothing uses yet.
        unsafe {
            rustix::mm::mmap_anonymous(
                self.start().cast(),
                self.len(),
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?;
        }
        Ok(())
    }

    /// The page size's logarithm stands in the flags from bit 26 on (mmap(2), MAP_HUGE_SHIFT).
    fn size_flag(&self) -> MapFlags {
        MapFlags::from_bits_retain(self.page.0.trailing_zeros() << 26)
    }

    fn map_one_pool_page(&self) -> io::Result<()> {
        // memfd_create(2) encodes the size like mmap.
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::from_bits_retain(self.size_flag().bits());
        let file = rustix::fs::memfd_create("hugewise-tlb", flags)?;
        rustix::fs::ftruncate(&file, self.page.0)?;
        for page in 0..self.pages {
            // SAFETY: replaces one page of a mapping we own and nothing uses yet.
            unsafe {
                rustix::mm::mmap(
                    self.start().add((page * self.page.0) as usize).cast(),
                    self.page.as_usize(),
                    ProtFlags::READ,
                    MapFlags::SHARED | MapFlags::FIXED,
                    &file,
                    0,
                )?;
            }
        }
        Ok(())
    }

    pub fn page(&self) -> Bytes {
        self.page
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Address of the first byte, to look it up in smaps or PAGEMAP_SCAN.
    pub fn address(&self) -> usize {
        self.start() as usize
    }

    pub(super) fn word(&self, offset: u64) -> *mut u64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.len() as u64,
            "beyond the span"
        );
        // SAFETY: inside the span, as just checked.
        unsafe { self.start().add(offset as usize).cast() }
    }

    /// A word whose page is in memory from here on; one of a private span is zero.
    pub(super) fn visited(&mut self, offset: u64) -> *mut u64 {
        let word = self.word(offset);
        // SAFETY: inside the span, which is borrowed mutably. Pages of a span that is one page hold zeros and are only read.
        unsafe {
            match self.behind {
                Behind::Private => word.write_volatile(0),
                Behind::OnePage => drop(word.read_volatile()),
            }
        }
        word
    }

    /// Proves the page size of a span that was not visited yet: visits one word in each of at most `most` regions all over it. A
    /// region is as large as a page of the PMD level, or of the span where these are larger. `None` if the span is shorter.
    ///
    /// # Errors
    /// If the kernel does not say which pages are present.
    pub fn prove(&mut self, region: Bytes, most: u64) -> io::Result<Option<Proof>> {
        let start = (self.address() as u64).next_multiple_of(region.0) - self.address() as u64;
        let count = (self.len() as u64).saturating_sub(start) / region.0;
        let sampled = most.min(count);
        let offsets: Vec<u64> = (0..sampled).map(|n| start + n * count / sampled * region.0).collect();
        for &offset in &offsets {
            self.visited(offset);
        }
        let places: Vec<u64> = offsets.iter().map(|offset| self.address() as u64 + offset).collect();
        let proof = (!places.is_empty()).then(|| prove(&places, region.0, scanned, present));
        proof.transpose()
    }

    /// How much of the present part of the first `bytes` is mapped by huge page-table entries, 0 to 1.
    ///
    /// # Errors
    /// Kernels before 6.7 lack PAGEMAP_SCAN.
    pub fn large_share(&self, bytes: Bytes) -> io::Result<f64> {
        scanned(self.address() as u64, bytes.0.min(self.len() as u64))
    }
}
