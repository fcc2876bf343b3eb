//! The statistics against cases worked out by hand, counting, and simulation.

use super::{Block, EXACT, center, counted, holm, in_the_limit, interval, p_value, ranks_by_block};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn block(own: f64, peers: &[f64]) -> Block {
    Block {
        own,
        peers: peers.to_vec(),
    }
}

fn differences(values: &[f64]) -> Vec<Block> {
    values.iter().map(|&value| block(value, &[0.0])).collect()
}

#[test]
fn an_outlier_hardly_moves_the_center() {
    assert_eq!(center(&differences(&[1.0, 2.0, 3.0])), Some(2.0));
    assert_eq!(center(&[block(3.0, &[1.0, 2.0])]), Some(1.5));
    assert_eq!(center(&[]), None);
    let calm = [0.01, 0.02, 0.03, 0.02, 0.01, 0.03, 0.02];
    let mut rough = calm;
    rough[3] = 5.0;
    let moved = center(&differences(&rough)).expect("values") - center(&differences(&calm)).expect("values");
    assert!(moved < 0.006, "{moved}");
}

#[test]
fn p_is_what_counting_gives() {
    // All plus or all minus, of 2^5 signs.
    assert_eq!(p_value(&differences(&[1.0, 2.0, 3.0, 4.0, 5.0])), 2.0 / 32.0);
    assert_eq!(p_value(&differences(&[-1.0, -2.0, -3.0, -4.0, -5.0])), 2.0 / 32.0);
    // As far out: none or the smallest turned round.
    assert_eq!(p_value(&differences(&[-1.0, 2.0, 3.0, 4.0, 5.0])), 4.0 / 32.0);
    // The largest of three, in each of four blocks: 1 of 3^4, on either side.
    let largest: Vec<Block> = (1..5)
        .map(|n| block(3.0 * f64::from(n), &[f64::from(n), 0.0]))
        .collect();
    assert!((p_value(&largest) - 2.0 / 81.0).abs() < 1e-12);
    assert_eq!(p_value(&differences(&[0.0, 0.0])), 1.0);
    assert_eq!(p_value(&[]), 1.0);
}

#[test]
fn p_is_what_trying_all_exchanges_gives() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let blocks: Vec<Block> = (0..5)
        .map(|_| block(rng.random(), &[rng.random(), rng.random::<f64>().powi(4)]))
        .collect();
    let ranks = super::ranks_by_block(&blocks);
    let own: usize = ranks.iter().map(|ranks| ranks[0]).sum();
    let all: Vec<usize> = (0..3_usize.pow(5))
        .map(|code| {
            ranks
                .iter()
                .enumerate()
                .map(|(at, ranks)| ranks[code / 3_usize.pow(at as u32) % 3])
                .sum()
        })
        .collect();
    let share = |far: &dyn Fn(usize) -> bool| all.iter().filter(|&&sum| far(sum)).count() as f64 / all.len() as f64;
    let counted = (2.0 * share(&|sum| sum <= own).min(share(&|sum| sum >= own))).min(1.0);
    assert!((p_value(&blocks) - counted).abs() < 1e-12);
}

#[test]
fn a_long_tail_on_one_side_makes_no_difference_out_of_nothing() {
    let mut rng = Pcg64Mcg::seed_from_u64(8);
    let mut likely = 0;
    for _ in 0..1000 {
        let mut time = || -rng.random::<f64>().powi(8);
        let blocks: Vec<Block> = (0..20).map(|_| block(time(), &[time(), time()])).collect();
        likely += u32::from(p_value(&blocks) <= 0.05);
    }
    assert!((25..=65).contains(&likely), "{likely} of 1000 at 5 %");
}

#[test]
fn beyond_what_is_counted_the_limit_is_within_a_thousandth() {
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let mut seen = Vec::new();
    for effect in [0.0, 0.0, 0.02, -0.05, 0.08, -0.12, 0.2, 0.3] {
        let mut time = || rng.random::<f64>().powi(4);
        let blocks: Vec<Block> = (0..=EXACT).map(|_| block(time() + effect, &[time(), time()])).collect();
        let ranks = ranks_by_block(&blocks);
        let own = ranks.iter().map(|ranks| ranks[0]).sum();
        let ((below, above), limit) = (counted(&ranks, own), in_the_limit(&ranks, own));
        assert!(
            (below - limit.0).abs() < 1e-3 && (above - limit.1).abs() < 1e-3,
            "{below} {above} {limit:?}"
        );
        assert_eq!(p_value(&blocks), (2.0 * limit.0.min(limit.1)).min(1.0));
        seen.push(below.min(above));
    }
    assert!(
        seen.iter().any(|p| *p > 0.1) && seen.iter().any(|p| (1e-4..0.05).contains(p)),
        "{seen:?}"
    );
    let same: Vec<Block> = (0..=EXACT).map(|_| block(1.0, &[1.0, 1.0])).collect();
    assert_eq!(p_value(&same), 1.0);
}

#[test]
fn holm_multiplies_the_smallest_by_all_and_keeps_the_order() {
    let close = |found: Vec<f64>, wanted: &[f64]| {
        let near = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near && found.len() == wanted.len(), "{found:?}");
    };
    close(holm(&[0.01, 0.04, 0.03]), &[0.03, 0.06, 0.06]);
    close(holm(&[0.5, 0.9]), &[1.0, 1.0]);
    close(holm(&[]), &[]);
}

#[test]
fn the_interval_holds_the_truth_in_about_19_of_20_cases_and_a_seed_repeats_it() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let mut held = 0;
    for seed in 0..200 {
        // Long-tailed on both sides, around 0.03.
        let mut draw = || 0.1 * (rng.random::<f64>() - 0.5).powi(3);
        let blocks: Vec<Block> = (0..20).map(|_| block(0.03 + draw(), &[draw(), draw()])).collect();
        let interval = interval(&blocks, seed).expect("values");
        held += u32::from(interval.low <= 0.03 && 0.03 <= interval.high);
    }
    assert!((175..=199).contains(&held), "{held}");
    let blocks = differences(&[0.1, 0.2, 0.4]);
    assert_eq!(interval(&blocks, 1), interval(&blocks, 1));
}
