//! What every measurement in rounds shares: the order of a round, and how far rounds lie apart. Pure.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// The order of the points of one round: another in each round, the same for the same seed.
pub(crate) fn order(points: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points).collect();
    order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed ^ u64::from(round) << 32));
    order
}

/// How far the medians of visits to one point lie apart, as a share of the smallest; 0 of fewer than two. It grows with the
/// number of visits: `stats::disagreement` does not, and replaces it where it is still used.
pub(crate) fn disagreement(medians: &[f64]) -> f64 {
    let low = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let high = medians.iter().copied().fold(0.0, f64::max);
    if low > 0.0 && low.is_finite() {
        high / low - 1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::{disagreement, order};

    #[test]
    fn each_round_has_its_own_order_and_a_seed_repeats_it() {
        assert_eq!(order(50, 7, 1), order(50, 7, 1));
        assert_ne!(order(50, 7, 1), order(50, 7, 2));
        assert_ne!(order(50, 7, 1), order(50, 8, 1));
    }

    #[test]
    fn rounds_that_differ_say_by_how_much_and_one_alone_does_not() {
        assert!((disagreement(&[100.0, 130.0, 110.0]) - 0.3).abs() < 1e-9);
        assert_eq!(disagreement(&[100.0]), 0.0);
        assert_eq!(disagreement(&[]), 0.0);
    }
}
