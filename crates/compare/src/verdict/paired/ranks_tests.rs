//! The test against cases worked out by hand, counting, and simulation.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::tests::{block, differences};
use super::{Block, EXACT, Ranks};

fn p_value(blocks: &[Block]) -> f64 {
    Ranks::of(blocks, 0.0).p_value()
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
    let ranks = Ranks::of(&blocks, 0.0);
    let ranks: Vec<&[usize]> = ranks.blocks().collect();
    let own: usize = ranks.iter().map(|ranks| ranks[0]).sum();
    let all: Vec<usize> = (0..3_usize.pow(5))
        .map(|code| {
            let drawn = |(at, ranks): (usize, &&[usize])| ranks[code / 3_usize.pow(at as u32) % 3];
            ranks.iter().enumerate().map(drawn).sum()
        })
        .collect();
    let share = |far: &dyn Fn(usize) -> bool| all.iter().filter(|&&sum| far(sum)).count() as f64 / all.len() as f64;
    let counted = (2.0 * share(&|sum| sum <= own).min(share(&|sum| sum >= own))).min(1.0);
    assert!((p_value(&blocks) - counted).abs() < 1e-12);
}

#[test]
fn a_long_tail_on_one_side_makes_no_difference_out_of_nothing() {
    let mut rng = Pcg64Mcg::seed_from_u64(8);
    for count in [10, 20, 40] {
        let mut likely = 0;
        for _ in 0..1000 {
            let mut time = || -rng.random::<f64>().powi(8);
            let blocks: Vec<Block> = (0..count).map(|_| block(time(), &[time(), time()])).collect();
            likely += u32::from(p_value(&blocks) <= 0.05);
        }
        assert!((25..=65).contains(&likely), "{count} blocks: {likely} of 1000 at 5 %");
    }
}

#[test]
fn beyond_what_is_counted_the_limit_is_within_two_thousandths_and_closer_below_5_percent() {
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let mut seen = Vec::new();
    for effect in (-20..40).map(|step| 0.02 * f64::from(step)) {
        let mut time = || rng.random::<f64>().powi(4);
        let blocks: Vec<Block> = (0..=EXACT).map(|_| block(time() + effect, &[time(), time()])).collect();
        let ranks = Ranks::of(&blocks, 0.0);
        let ((below, above), limit) = (ranks.counted(), ranks.in_the_limit());
        let most = if below.min(above) < 0.05 { 1e-3 } else { 2e-3 };
        assert!(
            (below - limit.0).abs() < most && (above - limit.1).abs() < most,
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
