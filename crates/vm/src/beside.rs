//! Rings walked by turns: natively and in a guest, the same bytes over the same memory.

use std::ptr::NonNull;
use std::time::Duration;

use chase::clock::ticks;
use chase::kernel::{self, UNROLL};
use chase::ring::{Rings, SLOTS, Slot};
use model::Bytes;
use model::guest::GuestPage;
use model::latency::Access;

use crate::guest::{Done, Guest, Job, Kernel};
use crate::stats::Stats;
use crate::{Config, Error, Hypervisor, MOST_BLOCKS, Memory, Ring, payload};

/// Pages in one timed block of a first touch.
pub const TOUCH_PAGES: u64 = 16;
const PAGE: u64 = 4096;
/// Beyond this nothing sensible is going on: a shadow fault takes tens of microseconds on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A guest over the memory of an arena, and the rings in it. Only one side walks at a time.
pub struct Beside<'m> {
    guest: Guest<'m>,
    rings: &'m mut Rings,
    bytes: u64,
    fresh: u64,
    read: Kernel,
    write: Kernel,
    touch: Kernel,
    /// Where the guest left each ring; the native walk has its own places.
    left: [Option<u64>; SLOTS],
}

#[derive(Clone, Copy, Debug)]
pub struct Walk {
    pub slot: Slot,
    /// Loads only, or loads and stores.
    pub access: Access,
    /// Steps in a block; rounded up to whole turns of the kernel.
    pub steps: u64,
    pub blocks: u64,
}

impl Walk {
    fn turns(&self) -> u64 {
        self.steps.div_ceil(UNROLL).max(1)
    }

    /// Steps that a block really has.
    pub fn real_steps(&self) -> u64 {
        self.turns() * UNROLL
    }
}

impl<'m> Beside<'m> {
    /// A guest that maps the first `bytes` of the arena with pages of that size; the first `fresh` bytes look never used to it.
    /// What the arena has beyond `bytes` holds the guest's page tables if they fit, else they are on base pages.
    pub fn new(
        hypervisor: &Hypervisor,
        rings: &'m mut Rings,
        bytes: Bytes,
        page: GuestPage,
        fresh: Bytes,
    ) -> Result<Self, Error> {
        // SAFETY: `rings` stays mutably borrowed in the value returned, for all of `'m`.
        let (memory, rest) = unsafe { lend(rings, bytes.0) }?;
        let mut config = Config {
            memory: Some(memory),
            page,
            fresh: fresh.0,
            tables: rest,
        };
        let guest = match Guest::new(hypervisor, &config) {
            Err(Error::TooMuch { .. }) if rest.is_some() => {
                config.tables = None;
                Guest::new(hypervisor, &config)
            }
            made => made,
        };
        let mut guest = guest?;
        Ok(Self {
            read: guest.load(kernel::bytes(Access::Read))?,
            write: guest.load(kernel::bytes(Access::Write))?,
            touch: guest.load(payload::touch())?,
            guest,
            rings,
            bytes: memory.len(),
            fresh: fresh.0.min(memory.len()),
            left: [None; SLOTS],
        })
    }

    /// Touches each small page of the fresh part once, in order, and gives the ticks of each block of [`TOUCH_PAGES`].
    pub fn touch_fresh(&mut self) -> Result<Vec<u64>, Error> {
        let start = self.start();
        self.touch(start, self.fresh / PAGE / TOUCH_PAGES)
    }

    /// Touches each small page of the rest once, so that nothing is left to be filled in.
    pub fn warm(&mut self) -> Result<(), Error> {
        let start = self.start() + self.fresh;
        let blocks = (self.bytes - self.fresh) / PAGE / TOUCH_PAGES;
        self.touch(start, blocks).map(drop)
    }

    fn touch(&mut self, mut from: u64, mut blocks: u64) -> Result<Vec<u64>, Error> {
        let mut ticks = Vec::new();
        while blocks > 0 {
            let now = blocks.min(MOST_BLOCKS);
            let done = self.run(self.touch, from, TOUCH_PAGES, now)?;
            ticks.extend(done.ticks);
            from = done.next;
            blocks -= now;
        }
        Ok(ticks)
    }

    /// Walks in the guest and gives the ticks of each block; nothing if no ring stands there. It goes on where the guest left
    /// the ring.
    pub fn walk_guest(&mut self, walk: &Walk) -> Result<Vec<u64>, Error> {
        let place = walk.slot.number();
        let Some(start) = self.left[place].or(self.rings.position(walk.slot).map(|at| at as u64)) else {
            return Ok(Vec::new());
        };
        let kernel = match walk.access {
            Access::Read => self.read,
            Access::Write => self.write,
        };
        let done = self.run(kernel, start, walk.turns(), walk.blocks)?;
        self.left[place] = Some(done.next);
        Ok(done.ticks)
    }

    fn run(&mut self, kernel: Kernel, start: u64, turns: u64, blocks: u64) -> Result<Done, Error> {
        self.guest.run(&Job {
            kernel,
            ring: Ring::User,
            start,
            turns,
            blocks,
            deadline: DEADLINE,
        })
    }

    /// Walks natively and gives the ticks of each block.
    pub fn walk_native(&mut self, walk: &Walk) -> Vec<u64> {
        (0..walk.blocks)
            .map(|_| {
                let start = ticks();
                self.rings.walk(walk.slot, walk.access, walk.real_steps());
                ticks() - start
            })
            .collect()
    }

    /// What the hypervisor has counted so far.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.guest.stats()
    }

    fn start(&self) -> u64 {
        self.rings.arena().address() as u64
    }
}

/// The first `bytes` of the arena, in whole pages, and the rest if there is any.
///
/// # Safety
/// The rings must stay mutably borrowed for `'m`, and must not be walked while a guest runs on the memory.
unsafe fn lend<'m>(rings: &Rings, bytes: u64) -> Result<(Memory<'m>, Option<Memory<'m>>), Error> {
    let arena = rings.arena();
    let used = bytes.next_multiple_of(PAGE).min(arena.size() as u64) as usize;
    let rest = (arena.size() - used) / PAGE as usize * PAGE as usize;
    let part = |offset: usize, len: usize| {
        let start = NonNull::new((arena.address() + offset) as *mut u8).unwrap_or(NonNull::dangling());
        // SAFETY: inside the arena, which the caller keeps mapped and untouched; rings hold addresses, not references. A
        // dangling start has an odd address and is refused.
        unsafe { Memory::from_raw(start, len) }
    };
    let rest = (rest > 0).then(|| part(used, rest)).transpose()?;
    Ok((part(0, used)?, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr)]

    use chase::arena::{Arena, Want};
    use chase::order::Order;
    use chase::ring::{Rings, Slot};
    use model::latency::{Access, Pattern};
    use model::{Bytes, PageKind};

    use super::{Beside, TOUCH_PAGES, Walk};
    use crate::Hypervisor;

    #[test]
    fn both_sides_walk_the_same_rings_and_neither_moves_the_other() {
        let hypervisor = match Hypervisor::open() {
            Ok(hypervisor) => hypervisor,
            Err(why) => return testing::skipped(&why.to_string()),
        };
        let (bytes, slot) = (Bytes::mib(8), Slot::new(2).expect("a slot"));
        for kind in [PageKind::Base, PageKind::Thp] {
            // Room behind the working set, for the page tables.
            let arena = Arena::new(&Want::plain(kind, Bytes::mib(10))).expect("memory");
            let mut rings = Rings::new(arena);
            let order = Order::new(Pattern::RandomLine, bytes, 5).expect("an order");
            rings.lay(&[(slot, order)]);
            let home = rings.position(slot);
            for page in hypervisor.guest_pages() {
                let mut beside = Beside::new(&hypervisor, &mut rings, bytes, page, Bytes::mib(1)).expect("a guest");
                let touched = beside.touch_fresh().expect("touches");
                assert_eq!(touched.len() as u64, 256 / TOUCH_PAGES);
                beside.warm().expect("warms");
                let stats = beside.stats().expect("stats");
                let count = |name| stats.get(name).unwrap_or(0);
                let (small, large) = (count("pages_4k"), count("pages_2m") + 512 * count("pages_1g"));
                assert!(
                    small + 512 * large >= bytes.0 >> 12,
                    "{kind} {page}: all of it is mapped: {stats:?}"
                );
                // One fault for each page that is mapped, of whatever size, and a few for tables that were filled in part.
                assert!(count("pf_fixed") <= small + large + 100, "{kind} {page}: {stats:?}");
                let walk = Walk {
                    slot,
                    access: Access::Write,
                    steps: 1024,
                    blocks: 128,
                };
                // A lap of 131,072 lines: both come home.
                assert_eq!(beside.walk_guest(&walk).expect("walks").len(), 128);
                assert_eq!(beside.left[2].map(|at| at as usize), home, "{kind} {page}");
                assert_eq!(beside.walk_native(&walk).len(), 128);
                assert_eq!(beside.rings.position(slot), home);
                let missing = Walk {
                    slot: Slot::SCRATCH,
                    ..walk
                };
                assert!(beside.walk_guest(&missing).expect("nothing to walk").is_empty());
            }
        }
    }
}
