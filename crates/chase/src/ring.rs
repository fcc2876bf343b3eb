//! Rings of pointers laid into an arena: eight can stand in the same lines at once, one pointer wide each.

use model::latency::Access;

use crate::arena::Arena;
use crate::kernel;
use crate::order::{LINE, Order};

/// Rings that can stand in one arena at the same time: a line of 64 bytes holds eight pointers.
pub const SLOTS: usize = 8;

/// A ring's place in the lines it uses, `0..SLOTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

impl Slot {
    /// The slot with that number; `None` past the last.
    pub fn new(number: usize) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// The slot for rings that are rebuilt at every visit.
    pub const SCRATCH: Self = Self(SLOTS - 1);

    /// Its number.
    pub fn number(self) -> usize {
        self.0
    }

    fn offset(self) -> usize {
        self.0 * 8
    }
}

/// An arena and the rings that stand in it.
#[derive(Debug)]
pub struct Rings {
    arena: Arena,
    /// The ring of each slot; `None` where there is none.
    standing: [Option<Standing>; SLOTS],
}

/// A ring that was laid, and where its walk was left.
#[derive(Clone, Debug)]
struct Standing {
    order: Order,
    cursor: Cursor,
}

#[derive(Clone, Copy, Debug)]
struct Cursor(*const u8);

// SAFETY: a cursor is an address in the arena that `Rings` owns; it is only followed through `&mut Rings`.
unsafe impl Send for Cursor {}

impl Rings {
    /// An arena in which no ring stands yet.
    pub fn new(arena: Arena) -> Self {
        Self {
            arena,
            standing: [const { None }; SLOTS],
        }
    }

    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Lays rings, all at once: every line is brought in once for all of them, which is what laying costs. A ring that
    /// stood in one of those slots is gone.
    ///
    /// # Panics
    /// If an order reaches beyond the arena.
    pub fn lay(&mut self, rings: &[(Slot, Order)]) {
        self.lay_while(rings, &mut || true);
    }

    /// As [`Self::lay`], for memory that takes long; `go_on` is asked again and again. Once it says no, nothing is laid, what stood
    /// in those slots is gone, and the answer is `false`.
    ///
    /// # Panics
    /// If an order reaches beyond the arena.
    pub fn lay_while(&mut self, rings: &[(Slot, Order)], go_on: &mut dyn FnMut() -> bool) -> bool {
        let base = self.arena.address();
        for (_, order) in rings {
            let end = order.offset(order.nodes() - 1) + LINE;
            assert!(end as usize <= self.arena.size(), "ring beyond its arena");
        }
        let address = |slot: Slot, order: &Order, node: u64| base + order.offset(node) as usize + slot.offset();
        // In strips of a few pages, so that a line is still in the cache when the next ring comes to it.
        const STRIP: u64 = 32 << 10;
        const ASKED: u64 = 1 << 20;
        rings.iter().for_each(|(slot, _)| self.standing[slot.0] = None);
        let mut next = vec![0u64; rings.len()];
        let mut limit = 0;
        while rings.iter().zip(&next).any(|((_, order), &node)| node < order.nodes()) {
            if limit % ASKED == 0 && !go_on() {
                return false;
            }
            limit += STRIP;
            for ((slot, order), node) in rings.iter().zip(&mut next) {
                while *node < order.nodes() && order.offset(*node) < limit {
                    let here = address(*slot, order, *node) as *mut usize;
                    // SAFETY: inside the arena (checked above), 8-byte aligned, and the arena is borrowed mutably.
                    unsafe { here.write(address(*slot, order, order.successor(*node))) };
                    *node += 1;
                }
            }
        }
        for (slot, order) in rings {
            let cursor = Cursor(address(*slot, order, 0) as *const u8);
            let order = order.clone();
            self.standing[slot.0] = Some(Standing { order, cursor });
        }
        true
    }

    /// Goes `steps` (rounded up to a multiple of [`kernel::UNROLL`]) on along the ring in that slot. Nothing if none stands.
    #[inline]
    pub fn walk(&mut self, slot: Slot, access: Access, steps: u64) {
        if let Some(Standing {
            cursor: Cursor(node), ..
        }) = &mut self.standing[slot.0]
        {
            // SAFETY: a cursor is a node of the closed ring that `lay` put into this slot of the arena we own; rings in
            // other slots never touch its pointers, and laying another ring here replaces the cursor.
            *node = unsafe { kernel::walk(access, *node, steps) };
        }
    }

    /// Goes on by `steps` as [`Self::walk`] does, about ten times faster: the order is computed, so no load waits for the
    /// one before it, and many misses are in flight. It leaves caches, TLBs and page-table lines as a walk of so many
    /// steps would that loses nothing to other users of the cache: a *parallel warm-up*.
    ///
    /// A walk that follows approaches its converged time from below, and one without a warm-up from above; where both
    /// arrive at the same time, the walk has converged. Nothing if no ring stands.
    pub fn preload(&mut self, slot: Slot, access: Access, steps: u64) {
        let base = self.arena.address() + slot.offset();
        let Some(Standing { order, cursor }) = &mut self.standing[slot.0] else {
            return;
        };
        let touch = |node: u64| {
            let line = (base + order.offset(node) as usize) as *mut usize;
            // SAFETY: a node of the ring that `lay` put into this slot of the arena we own (checked there), borrowed
            // mutably; what is written is the value already there.
            unsafe {
                let next = line.read_volatile();
                if access == Access::Write {
                    line.write_volatile(next);
                }
            }
        };
        let here = order.index((cursor.0 as usize - base) as u64);
        let there = order.follow(here, steps, touch);
        cursor.0 = (base + order.offset(there) as usize) as *const u8;
    }

    /// Address of the node where the ring in that slot was left.
    pub fn position(&self, slot: Slot) -> Option<usize> {
        self.standing[slot.0].as_ref().map(|ring| ring.cursor.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{Rings, SLOTS, Slot};
    use crate::arena::{Arena, Want};
    use crate::kernel::UNROLL;
    use crate::order::Order;
    use model::latency::{Access, Pattern};
    use model::{Bytes, PageKind};

    #[test]
    fn eight_rings_stand_in_one_arena_and_none_disturbs_another() {
        let arena = Arena::new(&Want::plain(PageKind::Base, Bytes::kib(256))).expect("256 KiB of base pages");
        let patterns = [
            Pattern::RandomLine,
            Pattern::LinePerPage,
            Pattern::PageRandom,
            Pattern::Stride(Bytes(256)),
        ];
        let orders: Vec<_> = (0..SLOTS)
            .map(|n| {
                let bytes = Bytes::kib(if n < 4 { 256 } else { 64 });
                (
                    Slot::new(n).expect("a slot"),
                    Order::new(patterns[n % 4], bytes, n as u64).expect("an order"),
                )
            })
            .collect();
        let mut rings = Rings::new(arena);
        rings.lay(&orders);
        for access in [Access::Read, Access::Write] {
            for (slot, order) in &orders {
                let start = rings.position(*slot);
                // All rings have a multiple of 16 nodes, so whole laps end where they began.
                assert_eq!(order.nodes() % UNROLL, 0);
                rings.walk(*slot, access, order.nodes());
                assert_eq!(rings.position(*slot), start, "{slot:?} {order:?}");
                rings.walk(*slot, access, UNROLL);
                assert_eq!(rings.position(*slot) == start, order.nodes() == UNROLL);
                // A warm-up goes the same way: what it steps over is what a walk would have stepped over.
                rings.preload(*slot, access, order.nodes() - UNROLL);
                assert_eq!(rings.position(*slot), start, "{slot:?} {order:?}");
                rings.preload(*slot, access, 3 * UNROLL);
                rings.walk(*slot, access, order.nodes());
                rings.walk(*slot, access, order.nodes() - 3 * UNROLL % order.nodes());
                assert_eq!(rings.position(*slot), start, "{slot:?} {order:?}");
            }
        }
    }

    #[test]
    fn an_empty_slot_is_not_walked() {
        let arena = Arena::new(&Want::plain(PageKind::Base, Bytes::kib(64))).expect("64 KiB of base pages");
        let mut rings = Rings::new(arena);
        rings.walk(Slot::SCRATCH, Access::Read, 16);
        rings.preload(Slot::SCRATCH, Access::Read, 16);
        assert_eq!(rings.position(Slot::SCRATCH), None);
    }
}
