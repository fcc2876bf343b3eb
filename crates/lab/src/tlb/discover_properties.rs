//! What the discovery may claim, over many geometries and fixed seeds: the truth, a range around it, or nothing.

use super::tests::{EFFORT, ROUNDS, told};
use super::{Discovery, discover};
use crate::tlb::simulated::{Chance, HEAVY, MODERATE, Noise, SECOND, Simulated, Truth, WALK};

/// How levels were told, in all cases together.
#[derive(Debug, Default)]
struct Tally {
    exact: usize,
    ranged: usize,
    unknown: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn levels(&self) -> usize {
        self.exact + self.ranged + self.unknown + self.wrong.len()
    }

    fn count(&mut self, seed: u64, truths: &[Truth], found: &Discovery) {
        let mut wrong = found.levels.len() > truths.len();
        for (at, truth) in truths.iter().enumerate() {
            let level = found.levels.get(at);
            let told = level.and_then(|level| level.entries);
            wrong |= level.is_some_and(|level| {
                level.ways.is_some_and(|ways| ways != truth.associativity())
                    || level.index.is_some_and(|index| index != truth.index)
            });
            match told {
                None => self.unknown += 1,
                Some(entries) if !(entries.low..=entries.high).contains(&truth.entries()) => wrong = true,
                Some(entries) if entries.is_exact() => self.exact += 1,
                Some(_) => self.ranged += 1,
            }
        }
        if wrong {
            self.wrong
                .push(format!("seed {seed}: {truths:?} told as {}", told(found)));
        }
    }
}

fn tally(seeds: std::ops::Range<u64>, noise: Noise, truths: impl Fn(&mut Chance) -> Vec<Truth>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let truths = truths(&mut Chance::new(seed));
        let cycles = [0.0, SECOND];
        let arrays: Vec<_> = (1..)
            .zip(&truths)
            .map(|(level, truth)| truth.array(level, cycles[usize::from(level) - 1]))
            .collect();
        let found = discover(&mut Simulated::new(&arrays, WALK, noise, seed), EFFORT, ROUNDS, &|| {
            false
        });
        tally.count(seed, &truths, &found);
    }
    tally
}

fn one(chance: &mut Chance) -> Vec<Truth> {
    vec![Truth::any(chance, 16, 4096)]
}

fn two(chance: &mut Chance) -> Vec<Truth> {
    let first = Truth::any(chance, 16, 128);
    let second = Truth::any(chance, 6 * first.entries(), 4096);
    vec![first, second]
}

#[test]
fn one_level_of_any_geometry_is_told_exactly_or_not_named() {
    let tally = tally(0..30, MODERATE, one);
    assert_eq!(tally.wrong, [] as [String; 0]);
    assert!(10 * tally.exact >= 9 * tally.levels(), "{tally:?}");
}

#[test]
fn two_levels_of_any_geometry_are_told_exactly_or_not_named() {
    let tally = tally(100..130, MODERATE, two);
    assert_eq!(tally.wrong, [] as [String; 0]);
    assert!(10 * tally.exact >= 9 * tally.levels(), "{tally:?}");
}

/// Other seeds than those that constants were chosen by.
#[test]
fn geometries_never_seen_before_are_told_exactly_or_not_named() {
    for truths in [one, two] {
        let tally = tally(3000..3015, MODERATE, truths);
        assert_eq!(tally.wrong, [] as [String; 0]);
        assert!(10 * tally.exact >= 9 * tally.levels(), "{tally:?}");
    }
    assert_eq!(tally(4000..4010, HEAVY, two).wrong, [] as [String; 0]);
}

/// A neighbour who is always there leaves no pass in which the truth could be seen.
#[test]
fn under_heavy_noise_nothing_wrong_is_told() {
    let tally = tally(200..220, HEAVY, two);
    assert_eq!(tally.wrong, [] as [String; 0]);
}
