//! The discovery against simulated TLBs of any geometry, with the noise of real machines added.

use crate::tlb::simulated_tlb::{Array, Replacement};
use model::tlb::{Entries, Index, Ways};

use super::{Effort, Found, Search};

/// As many passes as are affordable without optimization: fewer than any real effort makes at the edges.
pub(super) const EFFORT: Effort = Effort {
    passes: 12,
    refined: 24,
};
/// Rounds that levels get which the first one leaves open.
pub(super) const ROUNDS: u32 = 3;
use crate::tlb::simulated::{MODERATE, Noise, PAGE, Simulated};

/// The levels that a search finds in so many rounds.
pub(super) fn discover(oracle: Simulated, rounds: u32, stop: &dyn Fn() -> bool) -> Vec<Found> {
    let mut search = Search::new(oracle, EFFORT, stop);
    (0..rounds).for_each(|_| search.look());
    search.levels().cloned().collect()
}

fn run(arrays: &[Array], walk: f64, noise: Noise) -> Vec<Found> {
    discover(Simulated::new(arrays, walk, noise, 1), ROUNDS, &|| false)
}

/// `(entries, ways)` of the levels found; zero where unknown.
fn answer(levels: &[Found]) -> Vec<(u32, Option<Ways>)> {
    levels
        .iter()
        .map(|level| (level.entries.and_then(Entries::value).unwrap_or(0), level.ways))
        .collect()
}

pub(super) fn told(levels: &[Found]) -> String {
    format!(
        "{:#?}",
        levels
            .iter()
            .map(|level| (
                level.entries,
                level.ways,
                level.index,
                &level.not_told,
                level.penalty.len()
            ))
            .collect::<Vec<_>>()
    )
}

#[test]
fn sapphire_rapids_is_recovered_beside_a_busy_neighbour() {
    let base = [
        Array::new(1, PAGE, 16, 6, 0.0),
        Array::new(2, PAGE, 128, 16, 7.0).hashed(),
    ];
    let found = run(&base, 21.0, MODERATE);
    assert_eq!(
        answer(&found),
        [(96, Some(Ways::Count(6))), (2048, Some(Ways::Count(16)))],
        "{}",
        told(&found)
    );
    assert_eq!(found[1].index, Some(Index::Xor));
    let large = [Array::new(1, PAGE, 8, 4, 0.0), Array::new(2, PAGE, 128, 8, 7.0)];
    let found = run(&large, 21.0, MODERATE);
    assert_eq!(
        answer(&found),
        [(32, Some(Ways::Count(4))), (1024, Some(Ways::Count(8)))],
        "{}",
        told(&found)
    );
    assert_eq!(found[1].index, Some(Index::Linear));
}

#[test]
fn zen_4_is_recovered_with_its_gentle_second_level() {
    let arrays = [
        Array::new(1, PAGE, 1, 72, 0.0),
        Array {
            replacement: Replacement::TreePlru,
            ..Array::new(2, PAGE, 128, 24, 7.0)
        },
    ];
    let found = run(
        &arrays,
        36.0,
        Noise {
            jitter: 0.03,
            spikes: 0.05,
            ..Noise::default()
        },
    );
    assert_eq!(answer(&found)[0], (72, Some(Ways::Full)), "{}", told(&found));
    // Tree replacement of 24 ways misses gently from 25 pages on: only the edges show it.
    assert_eq!(answer(&found)[1], (3072, Some(Ways::Count(24))), "{}", told(&found));
}

#[test]
fn a_level_that_a_neighbour_hid_is_told_in_later_rounds() {
    let arrays = [Array::new(1, PAGE, 16, 6, 0.0), Array::new(2, PAGE, 128, 16, 7.0)];
    let noise = Noise {
        polluted: 1.0,
        leaves: Some(60),
        ..MODERATE
    };
    let told_in = |rounds| discover(Simulated::new(&arrays, 21.0, noise, 1), rounds, &|| false);
    let exact = |found: &[Found]| {
        let entries = found.iter().filter_map(|level| level.entries);
        entries.filter(|entries| entries.is_exact()).count()
    };
    let (hasty, patient) = (told_in(1), told_in(8));
    assert!(exact(&hasty) < 2, "{}", told(&hasty));
    assert_eq!(
        answer(&patient),
        [(96, Some(Ways::Count(6))), (2048, Some(Ways::Count(16)))],
        "{}",
        told(&patient)
    );
    assert!(
        patient[0].free.is_some_and(|free| free < 0.9),
        "contention was seen: {}",
        told(&patient)
    );
}

#[test]
fn a_machine_without_a_second_level_has_none() {
    let found = run(&[Array::new(1, PAGE, 16, 4, 0.0)], 30.0, MODERATE);
    assert_eq!(answer(&found), [(64, Some(Ways::Count(4)))], "{}", told(&found));
}

#[test]
fn the_penalty_is_what_the_next_level_costs() {
    let arrays = [Array::new(1, PAGE, 16, 4, 0.0), Array::new(2, PAGE, 128, 12, 9.0)];
    let found = run(&arrays, 40.0, Noise::default());
    for (level, cycles) in found.iter().zip([9.0, 40.0]) {
        assert!(!level.penalty.is_empty());
        assert!(
            level.penalty.iter().all(|penalty| (penalty - cycles).abs() < 2.0),
            "{:?}",
            level.penalty
        );
    }
}

#[test]
fn under_absurd_noise_it_does_not_know() {
    let arrays = [Array::new(1, PAGE, 16, 6, 0.0), Array::new(2, PAGE, 128, 16, 7.0)];
    let noise = Noise {
        jitter: 8.0,
        spikes: 0.9,
        polluted: 1.0,
        takes: 0.5,
        leaves: None,
        ..Noise::default()
    };
    // Each takes ten seconds: all rounds are made.
    for seed in 0..2 {
        let found = discover(Simulated::new(&arrays, 21.0, noise, seed), ROUNDS, &|| false);
        for level in &found {
            let right = [96, 2048].iter().any(|&truth| {
                level
                    .entries
                    .is_some_and(|entries| entries.low <= truth && truth <= entries.high)
            });
            assert!(level.entries.is_none() || right, "{}", told(&found));
        }
    }
}

#[test]
fn stopping_ends_it_and_leaves_nothing_claimed() {
    let arrays = [Array::new(1, PAGE, 16, 4, 0.0)];
    let found = discover(Simulated::new(&arrays, 30.0, MODERATE, 1), ROUNDS, &|| true);
    assert!(found.iter().all(|level| level.entries.is_none()), "{}", told(&found));
}
