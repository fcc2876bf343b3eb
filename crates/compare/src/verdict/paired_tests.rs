//! The statistics against cases worked out by hand, other ways to the same figures, and simulation.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Block, Interval, center, holm, p_value};

pub(super) fn block(own: f64, peers: &[f64]) -> Block {
    Block {
        own,
        peers: peers.to_vec(),
    }
}

fn interval(blocks: &[Block]) -> Option<Interval> {
    super::interval(blocks, super::REJECTED)
}

pub(super) fn differences(values: &[f64]) -> Vec<Block> {
    values.iter().map(|&value| block(value, &[0.0])).collect()
}

fn is_near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-5
}

type Noise = fn(&mut Pcg64Mcg) -> f64;

/// Noise as runs have it, by name: even, with a long tail on one side, and with one in ten runs far away from the rest.
const NOISES: [(&str, Noise); 3] = [
    ("even", |rng| 0.05 * rng.random::<f64>()),
    ("skewed", |rng| -0.3 * rng.random::<f64>().powi(8)),
    ("outliers", |rng| {
        let far = if rng.random_bool(0.1) { 1.0 } else { 0.0 };
        -0.05 * rng.random::<f64>().powi(4) - far * rng.random::<f64>()
    }),
];

/// Blocks of one run, better by so much, and its peers.
fn made(count: usize, peers: usize, effect: f64, noise: Noise, rng: &mut Pcg64Mcg) -> Vec<Block> {
    let mut one = || {
        let peers: Vec<f64> = (0..peers).map(|_| noise(rng)).collect();
        block(noise(rng) + effect, &peers)
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn an_outlier_hardly_moves_the_center() {
    let near = |blocks: &[Block], wanted| is_near(center(blocks).expect("values"), wanted);
    assert!(near(&differences(&[1.0, 2.0, 3.0]), 2.0));
    assert!(near(&[block(3.0, &[1.0, 2.0])], 1.5));
    assert_eq!(center(&differences(&[0.5; 4])), Some(0.5));
    assert_eq!(center(&[]), None);
    let calm = [0.01, 0.02, 0.03, 0.02, 0.01, 0.03, 0.02];
    let mut rough = calm;
    rough[3] = 5.0;
    let moved = center(&differences(&rough)).expect("values") - center(&differences(&calm)).expect("values");
    assert!(moved.abs() < 0.006, "{moved}");
}

/// By hand: of six signs only all alike are rejected (2 of 64), of seven all alike, or all but that of the smallest or the
/// second smallest (6 of 128). Two differences count as equal and opposite halfway between.
#[test]
fn the_interval_of_pairs_is_what_counting_signs_gives() {
    let ends = |values: &[f64]| {
        let interval = interval(&differences(values)).expect("values");
        interval.ends.expect("enough blocks")
    };
    let (low, high) = ends(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    assert!(is_near(low, 1.0) && is_near(high, 32.0), "{low} {high}");
    let (low, high) = ends(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    assert!(is_near(low, 2.0) && is_near(high, (64.0 + 16.0) / 2.0), "{low} {high}");
}

#[test]
fn the_interval_holds_just_the_shifts_that_the_test_does_not_reject() {
    let mut rng = Pcg64Mcg::seed_from_u64(4);
    let (mut asked, mut wrong) = (0, 0);
    for (_, noise) in NOISES {
        for count in [6, 12, 30] {
            let blocks = made(count, 2, 0.03, noise, &mut rng);
            let Interval { center, ends } = interval(&blocks).expect("values");
            let (low, high) = ends.expect("enough blocks");
            let less = |block: &Block, shift| super::tests::block(block.own - shift, &block.peers);
            let p_at = |shift| p_value(&blocks.iter().map(|block| less(block, shift)).collect::<Vec<_>>());
            assert!(low <= center && center <= high && p_at(center) > 0.9);
            for step in -50..150 {
                let shift = low + (high - low) * (f64::from(step) + 0.5) / 100.0;
                asked += 1;
                wrong += u32::from((p_at(shift) > 0.05) != (low <= shift && shift <= high));
            }
        }
    }
    // Blocks are weighed by how far their runs lie apart, with the shift: a rank may turn back for a moment.
    assert!(wrong * 200 <= asked, "{wrong} of {asked}");
}

#[test]
fn no_difference_is_within_the_interval_unless_the_test_rejects_it() {
    let mut rng = Pcg64Mcg::seed_from_u64(6);
    let mut rejected = 0;
    for round in 0..900 {
        let (_, noise) = NOISES[round % 3];
        let effect = 0.04 * rng.random::<f64>() - 0.02;
        let blocks = made(6 + round % 25, 1 + round % 2, effect, noise, &mut rng);
        let (p, interval) = (p_value(&blocks), interval(&blocks).expect("values"));
        assert_eq!(interval.holds_zero(), p > 0.05, "{p} {interval:?} {blocks:?}");
        rejected += u32::from(p <= 0.05);
    }
    assert!((100..800).contains(&rejected), "{rejected}");
}

#[test]
fn few_blocks_have_an_estimate_but_no_interval_and_equal_ones_are_a_point() {
    let few = interval(&differences(&[0.1, 0.2, 0.3, 0.4, 0.5])).expect("values");
    assert!(is_near(few.center, 0.3) && few.ends.is_none() && few.holds_zero());
    assert_eq!(interval(&[]), None);
    let point = |at| {
        let ends = Some((at, at));
        Some(Interval { center: at, ends })
    };
    assert_eq!(interval(&differences(&[0.2; 8])), point(0.2));
    assert_eq!(interval(&differences(&[0.0; 8])), point(0.0));
}

#[test]
fn the_interval_holds_the_truth_in_at_least_19_of_20_cases() {
    for (name, noise) in NOISES {
        for (count, peers) in [(6, 2), (6, 1), (10, 2), (20, 2), (20, 1), (40, 2)] {
            let mut rng = Pcg64Mcg::seed_from_u64(3);
            let holds = |_: &u32| {
                let interval = interval(&made(count, peers, 0.03, noise, &mut rng)).expect("values");
                interval.ends.is_some_and(|(low, high)| low <= 0.03 && 0.03 <= high)
            };
            let held = (0..500).filter(holds).count();
            assert!(held >= 465, "{name}, {count} blocks: {held} of 500");
        }
    }
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
