//! What happens next: one time for each CPU and each world.

use std::collections::BTreeSet;

use super::Ns;

/// Slots with times. Equal times come in the order of their slots.
#[derive(Debug)]
pub(super) struct Agenda {
    times: Vec<Option<Ns>>,
    order: BTreeSet<(Ns, usize)>,
}

impl Agenda {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            times: vec![None; slots],
            order: BTreeSet::new(),
        }
    }

    pub(super) fn set(&mut self, slot: usize, at: Ns) {
        self.clear(slot);
        self.times[slot] = Some(at);
        self.order.insert((at, slot));
    }

    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(before) = self.times[slot].take() {
            self.order.remove(&(before, slot));
        }
    }

    /// The first slot and its time; none if no slot has one.
    pub(super) fn first(&self) -> Option<(Ns, usize)> {
        self.order.first().copied()
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
