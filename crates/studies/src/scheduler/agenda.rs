//! What happens next: one time for each CPU and each world in a tree of minima, so that no entry is ever stale.

use super::Ns;

/// Bits of a key that hold the slot; the others hold the time.
const SLOT_BITS: u32 = 20;
/// The longest simulated time: 44 bits of nanoseconds are more than 4.8 hours.
pub(super) const LONGEST: Ns = (1 << 44) - 1;
pub(super) const MOST: usize = 1 << SLOT_BITS;
const NEVER: u64 = u64::MAX;

/// Slots with times. Equal times come in the order of their slots.
#[derive(Debug)]
pub(super) struct Agenda {
    /// A tree in an array: each node holds the smaller of its two children, the leaves are the slots.
    keys: Vec<u64>,
    leaves: usize,
}

impl Agenda {
    pub(super) fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        Self {
            keys: vec![NEVER; 2 * leaves],
            leaves,
        }
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: Ns) {
        self.put(slot, (at.min(LONGEST) << SLOT_BITS) | slot as u64);
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: usize) {
        self.put(slot, NEVER);
    }

    /// The first slot and its time; none if no slot has one.
    #[inline]
    pub(super) fn first(&self) -> Option<(Ns, usize)> {
        let key = self.keys[1];
        let slot = (key & (MOST as u64 - 1)) as usize;
        (key != NEVER).then_some((key >> SLOT_BITS, slot))
    }

    #[inline]
    fn put(&mut self, slot: usize, key: u64) {
        let mut place = self.leaves + slot;
        self.keys[place] = key;
        while place > 1 {
            let least = self.keys[place].min(self.keys[place ^ 1]);
            place /= 2;
            if self.keys[place] == least {
                return;
            }
            self.keys[place] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Agenda;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(changes in proptest::collection::vec((0_usize..37, proptest::option::of(0_u64..50)), 1..200)) {
            let (mut agenda, mut plain) = (Agenda::new(37), [None; 37]);
            for (slot, at) in changes {
                plain[slot] = at;
                match at {
                    Some(at) => agenda.set(slot, at),
                    None => agenda.clear(slot),
                }
                let least = plain.iter().enumerate().filter_map(|(slot, at)| Some(((*at)?, slot))).min();
                prop_assert_eq!(agenda.first(), least);
            }
        }
    }
}
