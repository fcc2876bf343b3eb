//! A way to empty this CPU's TLBs without privilege.

use std::io;

use model::PageKind;
use rustix::mm::MprotectFlags;

use super::span::{Behind, Span};

/// Linux flushes pages one by one up to 33 of them (`tlb_single_page_flush_ceiling`, arch/x86/mm/tlb.c), and all at once beyond.
const PAGES: u64 = 64;

/// Pages that are write-protected and released again.
#[derive(Debug)]
pub struct Flush(Span);

impl Flush {
    /// Takes a few base pages.
    ///
    /// # Errors
    /// If memory is refused.
    pub fn new() -> io::Result<Self> {
        let mut span = Span::reserve(PageKind::Base, PAGES, Behind::Private)?;
        // What is emptied reaches from the first page that loses a right to the last: those in between need not be there, which
        // would take twice the time.
        for page in [0, PAGES - 1] {
            span.visited(page * span.page().0);
        }
        Ok(Self(span))
    }

    /// Empties the TLBs of what belongs to this process: taking a right away from more pages than are worth single
    /// instructions.
    pub fn all(&self) {
        for rights in [MprotectFlags::READ, MprotectFlags::READ | MprotectFlags::WRITE] {
            // SAFETY: the range is a mapping that `self` owns and nothing reads or writes any more. Should it be refused, the TLBs
            // stay as they are, which costs precision only.
            let _ = unsafe { rustix::mm::mprotect(self.0.start().cast(), self.0.len(), rights) };
        }
    }
}
