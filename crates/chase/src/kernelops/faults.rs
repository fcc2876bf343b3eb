//! Faults of anonymous memory, one page each: first write, first read, first write after a fork.

use std::io;
use std::ops::Range;

use model::latency::Access;
use model::{Bytes, PageKind};

use super::batch::{BASE, Batch, Timed, timed};
use crate::arena::{Arena, NotObtained, Want};
use crate::child::Child;

/// Base pages in a batch: about 100 us.
const BATCH: usize = 64;
/// Base pages of the memory in use: enough that renewing it is rare.
const BASE_PAGES: u64 = 2048;
/// Huge pages of it: few, because zeroing them takes most of the time.
const LARGE_PAGES: u64 = 16;

/// How much memory the faults of a kind go round in.
pub(super) fn span(kind: PageKind) -> Bytes {
    Bytes(kind.x86_size().0 * if kind.is_large() { LARGE_PAGES } else { BASE_PAGES })
}

/// Pages of one arena, each touched for the first time.
struct Pages {
    arena: Arena,
    page: usize,
    batch: usize,
    next: usize,
}

impl Pages {
    fn new(kind: PageKind) -> Result<Self, NotObtained> {
        Ok(Self {
            arena: Arena::untouched(&Want::plain(kind, span(kind)))?,
            page: kind.x86_size().as_usize(),
            batch: if kind.is_large() { 1 } else { BATCH },
            next: 0,
        })
    }

    /// Are there too few untouched pages left for a batch?
    fn is_used_up(&self) -> bool {
        self.next + self.batch * self.page > self.arena.size()
    }

    /// All pages are given back to the kernel.
    fn renew(&mut self) -> io::Result<()> {
        self.next = 0;
        self.arena.discard()
    }

    /// Touches the next pages. Of a huge page the first and the last base page: where the kernel gave base pages instead,
    /// that makes two faults, which the counts show.
    fn touch(&mut self, access: Access) -> io::Result<Batch> {
        let pages = self.next..self.next + self.batch * self.page;
        self.next = pages.end;
        let start = self.arena.start();
        let (page, last) = (self.page, self.page - BASE);
        let mut batch = timed(self.batch as u64, || {
            for at in pages.step_by(page) {
                // SAFETY: whole pages inside the arena, which is ours and borrowed mutably.
                unsafe {
                    touch(start.add(at), access);
                    touch(start.add(at + last), access);
                }
            }
            Ok(())
        })?;
        batch.counts.pages = (self.batch * self.page / BASE) as u64;
        Ok(batch)
    }
}

/// # Safety
/// `at` lies in memory that may be read and written.
unsafe fn touch(at: *mut u8, access: Access) {
    // SAFETY: by contract.
    unsafe {
        match access {
            Access::Read => drop(at.read_volatile()),
            Access::Write => at.write_volatile(1),
        }
    }
}

pub(super) struct Touch {
    pages: Pages,
    access: Access,
}

impl Touch {
    pub(super) fn open(kind: PageKind, access: Access) -> Result<Self, NotObtained> {
        let pages = Pages::new(kind)?;
        Ok(Self { pages, access })
    }
}

impl Timed for Touch {
    fn batch(&mut self) -> io::Result<Batch> {
        if self.pages.is_used_up() {
            self.pages.renew()?;
        }
        self.pages.touch(self.access)
    }

    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        while !self.pages.is_used_up() {
            self.pages.touch(self.access)?;
        }
        Ok(Some(self.pages.arena.range()))
    }
}

/// First writes to pages that a child shares.
pub(super) struct Cow {
    pages: Pages,
    sharer: Option<Child>,
}

impl Cow {
    pub(super) fn open() -> Result<Self, NotObtained> {
        Ok(Self {
            pages: Pages::new(PageKind::Base)?,
            sharer: None,
        })
    }

    /// New pages, and a child that holds on to them.
    fn share(&mut self) -> io::Result<()> {
        self.sharer = None;
        self.pages.renew()?;
        while !self.pages.is_used_up() {
            self.pages.touch(Access::Write)?;
        }
        self.pages.next = 0;
        self.sharer = Some(Child::idle()?);
        Ok(())
    }
}

impl Timed for Cow {
    fn batch(&mut self) -> io::Result<Batch> {
        if self.sharer.is_none() || self.pages.is_used_up() {
            self.share()?;
        }
        self.pages.touch(Access::Write)
    }

    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        Ok(Some(self.pages.arena.range()))
    }
}
