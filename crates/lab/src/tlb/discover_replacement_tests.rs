//! Fully associative arrays that replace in any way, beside every neighbor, and hashes that no fit knows: what may be claimed.

use model::tlb::Hash;
use sim::tlb::Replacement;

use super::properties::{Tally, passes_for_built, tell_by};
use crate::tlb::simulated::{Chance, HEAVY, Held, MODERATE, Noise, QUIET, Simulated, Steady, Truth};

/// Not those of the other suites. Ranges and draws were revised after failures among 70000 to 70399 and 140000 to 140399.
const FIRST_SEED: u64 = 70_000;
/// How many arrays are tried where this variable does not say otherwise; thousands take minutes.
const ARRAYS: &str = "HUGEWISE_TLB_ARRAYS";
const FEW: u64 = 60;

fn arrays() -> u64 {
    std::env::var(ARRAYS).map_or(FEW, |count| count.parse().expect("a number of arrays"))
}

/// Sizes as TLBs are built, where a steady neighbor would make another number ambiguous by itself.
const BUILT: [u32; 8] = [16, 24, 32, 48, 64, 72, 96, 128];

fn full(chance: &mut Chance, is_built: bool) -> Truth {
    let ways = if is_built {
        BUILT[chance.within(0, BUILT.len() as u32 - 1) as usize]
    } else {
        chance.within(16, 128)
    };
    let replacement = Replacement::ALL[chance.within(0, Replacement::ALL.len() as u32 - 1) as usize];
    Truth {
        sets: 1,
        ways,
        hash: Hash::Linear,
        replacement,
    }
}

/// The neighbors of the other suites, by turns: none, coming and going, always there, and steady ones that are away at times.
fn beside(number: u64, truth: Truth, chance: &mut Chance) -> Noise {
    let steady = |away: f64, noise: Noise, chance: &mut Chance| {
        let held = Held {
            ways: chance.within(0, truth.ways / 4),
            scattered: 0,
        };
        let holds = [held, Held::default()];
        Noise {
            steady: Steady { holds, away },
            ..noise
        }
    };
    match number % 8 {
        0 => QUIET,
        1 | 2 => MODERATE,
        3 => HEAVY,
        4 => steady(0.0, QUIET, chance),
        5 => steady(0.0, MODERATE, chance),
        6 => steady(0.1, QUIET, chance),
        _ => steady(0.3, MODERATE, chance),
    }
}

#[test]
fn fully_associative_arrays_of_any_replacement_are_told_or_not_named_beside_any_neighbor() {
    let mut tally = Tally::default();
    for number in 0..arrays() {
        let seed = FIRST_SEED + number;
        let mut chance = Chance::new(seed);
        let truth = full(&mut chance, number % 8 > 3);
        let noise = beside(number, truth, &mut chance);
        let Steady { holds, away } = noise.steady;
        if away == 0.0 && holds[0].ways > 0 && passes_for_built(truth, holds[0]) {
            continue;
        }
        let oracle = |arrays: &[_], walk| Simulated::new(arrays, walk, noise, seed).small(600);
        let mut told = tell_by(&[truth], oracle);
        told.iter_mut().for_each(|level| level.widen(&[]));
        tally.count(seed, &[truth], &told);
    }
    show(&tally);
    assert_eq!(tally.wrong, [] as [String; 0]);
    assert!(2 * (tally.exact + tally.ranged) > tally.levels(), "{tally:?}");
}

/// Sets found by shifts that no shape of a fit has: how many there are may be told, not how they are found.
#[test]
fn arrays_of_unknown_hashes_are_not_given_a_geometry_that_they_do_not_have() {
    let mut tally = Tally::default();
    for number in 0..arrays() {
        let seed = 2 * FIRST_SEED + number;
        let mut chance = Chance::new(seed);
        let built = Truth::built(&mut chance, 16, 128);
        let bits = built.sets.ilog2() as u8;
        if bits == 0 {
            continue;
        }
        let hash = Hash::Shift {
            by: bits + chance.within(1, 4) as u8,
            parts: chance.within(2, 4) as u8,
        };
        let truth = Truth { hash, ..built };
        let noise = beside(number % 4, truth, &mut chance);
        let oracle = |arrays: &[_], walk| Simulated::new(arrays, walk, noise, seed).small(600);
        let mut told = tell_by(&[truth], oracle);
        told.iter_mut().for_each(|level| level.widen(&[]));
        tally.count(seed, &[truth], &told);
    }
    show(&tally);
    assert_eq!(tally.wrong, [] as [String; 0]);
}

#[allow(clippy::print_stderr)]
fn show(tally: &Tally) {
    let Tally {
        exact, ranged, unknown, ..
    } = tally;
    eprintln!(
        "{exact} exact, {ranged} a range, {unknown} unknown, {} wrong",
        tally.wrong.len()
    );
}
