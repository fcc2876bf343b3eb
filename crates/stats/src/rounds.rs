//! What every measurement in rounds shares: the order of a round. Pure.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// The order of the points of one round: another in each round, the same for the same seed.
pub fn order(points: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points).collect();
    order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed ^ u64::from(round) << 32));
    order
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn each_round_has_its_own_order_and_a_seed_repeats_it() {
        assert_eq!(order(50, 7, 1), order(50, 7, 1));
        assert_ne!(order(50, 7, 1), order(50, 7, 2));
        assert_ne!(order(50, 7, 1), order(50, 8, 1));
    }
}
