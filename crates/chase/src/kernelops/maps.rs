//! Memory mapped and unmapped, untouched or written.

use std::io;
use std::ops::Range;

use rustix::mm::MapFlags;

use super::batch::{BASE, Batch, Timed, timed};
use crate::arena::{Arena, NotObtained, Want};
use crate::syscall::Mapping;

/// Mappings in a batch: about 100 us.
const BATCH: u64 = 64;
/// Base pages of a mapping that is never touched.
const PAGES: usize = 16;

/// Mapped and unmapped.
pub(super) fn untouched() -> impl FnMut() -> io::Result<Batch> {
    let once = |_: u64| Mapping::anonymous(PAGES * BASE, MapFlags::empty()).map(drop);
    move || timed(BATCH, || (0..BATCH).try_for_each(once))
}

/// Mapped, written and unmapped.
pub(super) struct Touched {
    want: Want,
    held: Option<Arena>,
}

impl Touched {
    pub(super) fn open(want: &Want) -> io::Result<Self> {
        let mut this = Self {
            want: *want,
            held: None,
        };
        this.memory()?;
        Ok(this)
    }

    /// A mapping with every base page written.
    fn written(&self) -> Result<Arena, NotObtained> {
        let mut arena = Arena::untouched(&self.want)?;
        let start = arena.start();
        for at in (0..arena.size()).step_by(BASE) {
            // SAFETY: inside the arena, which is ours.
            unsafe { start.add(at).write_volatile(1) };
        }
        Ok(arena)
    }
}

impl Timed for Touched {
    fn batch(&mut self) -> io::Result<Batch> {
        // The pool may have pages for one at a time only.
        self.held = None;
        let mut batch = timed(1, || self.written().map(drop).map_err(io::Error::other))?;
        batch.counts.pages = self.want.bytes.0 / BASE as u64;
        Ok(batch)
    }

    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        self.held = None;
        self.held = Some(self.written().map_err(io::Error::other)?);
        Ok(self.held.as_ref().map(Arena::range))
    }
}
