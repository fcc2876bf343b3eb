//! The order of the runs: every block has each arm once and the reference twice. Pure.

use model::compare::Order;

use stats::rounds;

/// One run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The block, from 0.
    pub block: u32,
    /// Which arm, as an index; 0 is the reference.
    pub arm: usize,
    /// The second run of the reference?
    pub again: bool,
}

/// The runs of one block in their order; the same seed gives the same order.
///
/// The reference runs twice: the two are the comparison's own A/A, and both together are the ground that an arm is
/// compared with.
pub fn block(arms: usize, order: Order, seed: u64, block: u32) -> Vec<Slot> {
    // The index after the last arm stands for the second run of the reference.
    let slot = |index: usize| Slot {
        block,
        arm: if index == arms { 0 } else { index },
        again: index == arms,
    };
    let drawn = match order {
        Order::Random => rounds::order(arms + 1, seed, block),
        Order::Mirrored => {
            let mut drawn = rounds::order(arms + 1, seed, block / 2);
            if block % 2 == 1 {
                drawn.reverse();
            }
            drawn
        }
    };
    drawn.into_iter().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::{Slot, block};
    use model::compare::Order;

    #[test]
    fn a_block_has_every_arm_once_and_the_reference_twice() {
        for order in [Order::Mirrored, Order::Random] {
            let mut slots = block(3, order, 7, 4);
            slots.sort();
            let slot = |arm, again| Slot { block: 4, arm, again };
            assert_eq!(slots, [slot(0, false), slot(0, true), slot(1, false), slot(2, false)]);
        }
    }

    #[test]
    fn the_block_after_runs_backwards_so_that_steady_drift_cancels_out() {
        for seed in 0..20 {
            let place = |at: u32, arm: usize| {
                let slots = block(2, Order::Mirrored, seed, at);
                let found = slots.iter().position(|slot| slot.arm == arm && !slot.again);
                found.expect("in the block") as u32 + 3 * at
            };
            assert_eq!(place(0, 0) + place(1, 0), place(0, 1) + place(1, 1));
        }
    }

    #[test]
    fn a_seed_repeats_the_order_and_another_gives_another() {
        let orders = |seed| (0..20).map(|at| block(4, Order::Random, seed, at)).collect::<Vec<_>>();
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }
}
