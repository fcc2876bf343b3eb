//! Rings of pointers laid into an arena: eight can stand in the same lines at once, one pointer wide each.

use model::latency::Access;

use crate::arena::Arena;
use crate::kernel;
use crate::order::Order;

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

    fn offset(self) -> usize {
        self.0 * 8
    }
}

/// A position on a ring that stands in an arena.
#[derive(Clone, Copy, Debug)]
pub struct Cursor(*const u8);

/// Lays one ring into the arena and returns its start. A ring that stood in that slot is gone.
///
/// # Panics
/// If the order reaches beyond the arena.
pub fn build(arena: &mut Arena, slot: Slot, order: &Order) -> Cursor {
    build_all(arena, &[(slot, order.clone())])[0]
}

/// Lays several rings at once: every line is brought in once for all of them, which is what laying a ring costs.
///
/// # Panics
/// If an order reaches beyond the arena.
pub fn build_all(arena: &mut Arena, rings: &[(Slot, Order)]) -> Vec<Cursor> {
    let base = arena.start();
    for (_, order) in rings {
        assert!(
            order.offset(order.nodes() - 1) as usize + crate::order::LINE as usize <= arena.len(),
            "ring beyond its arena"
        );
    }
    let address = |slot: Slot, order: &Order, node: u64| base as usize + order.offset(node) as usize + slot.offset();
    // In strips of a few pages, so that a line is still in the cache when the next ring comes to it.
    const STRIP: u64 = 32 << 10;
    let mut next = vec![0u64; rings.len()];
    let mut limit = 0;
    while rings.iter().zip(&next).any(|((_, order), &node)| node < order.nodes()) {
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
    rings
        .iter()
        .map(|(slot, order)| Cursor(address(*slot, order, 0) as *const u8))
        .collect()
}

impl Cursor {
    /// Goes `steps` on along the ring.
    ///
    /// # Safety
    /// The arena must be alive, and the ring must not have been overwritten since it was laid.
    #[inline]
    pub unsafe fn walk(&mut self, access: Access, steps: u64) {
        // SAFETY: by the caller's word this is a node of a standing, closed ring.
        self.0 = unsafe { kernel::walk(access, self.0, steps) };
    }

    /// Address of the node it stands on.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, Slot, build_all};
    use crate::arena::{Arena, Want};
    use crate::kernel::UNROLL;
    use crate::order::Order;
    use model::latency::{Access, Pattern};
    use model::{Bytes, PageKind};

    #[test]
    fn eight_rings_stand_in_one_arena_and_none_disturbs_another() {
        let mut arena = Arena::new(&Want::plain(PageKind::Base, Bytes::kib(256))).expect("256 KiB of base pages");
        let patterns = [
            Pattern::RandomLine,
            Pattern::LinePerPage,
            Pattern::PageRandom,
            Pattern::Stride(Bytes(256)),
        ];
        let rings: Vec<_> = (0..SLOTS)
            .map(|n| {
                let bytes = Bytes::kib(if n < 4 { 256 } else { 64 });
                (
                    Slot::new(n).expect("a slot"),
                    Order::new(patterns[n % 4], bytes, n as u64).expect("an order"),
                )
            })
            .collect();
        let cursors = build_all(&mut arena, &rings);
        for access in [Access::Read, Access::Write] {
            for ((slot, order), cursor) in rings.iter().zip(&cursors) {
                let mut at = *cursor;
                // All rings have a multiple of 16 nodes, so whole laps end where they began.
                assert_eq!(order.nodes() % UNROLL, 0);
                // SAFETY: the arena is alive and its rings stand in slots of their own.
                unsafe { at.walk(access, order.nodes()) };
                assert_eq!(at.address(), cursor.address(), "{slot:?} {order:?}");
                // SAFETY: as above.
                unsafe { at.walk(access, UNROLL) };
                assert_eq!(at.address() == cursor.address(), order.nodes() == UNROLL);
            }
        }
    }
}
