//! What the discovery may claim, over many geometries and fixed seeds: the truth, a range around it, or nothing.

use crate::tlb::simulated_tlb::Array;
use model::PageKind;
use model::tlb::{Entries, Level, built};

use super::tests::{ROUNDS, discover};
use crate::tlb::level_of;
use crate::tlb::simulated::{Chance, HEAVY, Held, MODERATE, Noise, QUIET, SECOND, Simulated, Steady, Truth, WALK};

/// Outcomes of the search for levels, in all cases together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) exact: usize,
    pub(super) ranged: usize,
    pub(super) unknown: usize,
    pub(super) wrong: Vec<String>,
}

impl Tally {
    pub(super) fn levels(&self) -> usize {
        self.exact + self.ranged + self.unknown + self.wrong.len()
    }

    pub(super) fn counts(&self) -> String {
        let Self {
            exact, ranged, unknown, ..
        } = self;
        let wrong = self.wrong.len();
        format!("{exact} exact, {ranged} a range, {unknown} unknown, {wrong} wrong")
    }

    pub(super) fn count(&mut self, seed: u64, truths: &[Truth], told: &[Level]) {
        // A level that does not exist is a wrong name, with entries or without.
        let wrong = told.len() > truths.len() || truths.iter().zip(told).any(|(truth, level)| truth.is_denied(level));
        if wrong {
            self.wrong.push(format!("seed {seed}: {truths:?} found as {told:#?}"));
            return;
        }
        for at in 0..truths.len() {
            match told.get(at).and_then(|level| level.entries) {
                None => self.unknown += 1,
                Some(entries) if entries.is_exact() => self.exact += 1,
                Some(_) => self.ranged += 1,
            }
        }
    }
}

impl Truth {
    /// Is what was found of it wrong?
    fn is_denied(self, told: &Level) -> bool {
        let outside = |entries: Entries| !(entries.low..=entries.high).contains(&self.entries());
        told.entries.is_some_and(outside)
            || told.ways.is_some_and(|ways| ways != self.associativity())
            || told
                .index
                .is_some_and(|index| index != self.hash.index() || self.sets == 1)
    }
}

/// What is found of simulated levels.
fn tell(truths: &[Truth], noise: Noise, seed: u64) -> Vec<Level> {
    tell_by(truths, |arrays, walk| Simulated::new(arrays, walk, noise, seed))
}

/// The same by an oracle made of the arrays and the cost of a walk.
pub(super) fn tell_by(truths: &[Truth], oracle: impl Fn(&[Array], f64) -> Simulated) -> Vec<Level> {
    let cycles = [0.0, SECOND];
    let arrays: Vec<_> = (1..)
        .zip(truths)
        .map(|(level, truth)| truth.array(level, cycles[usize::from(level) - 1]))
        .collect();
    let found = discover(oracle(&arrays, WALK), ROUNDS, &|| false);
    let numbered = (1..).zip(&found);
    numbered
        .map(|(number, level)| level_of(PageKind::Base, number, level))
        .collect()
}

fn tally(seeds: std::ops::Range<u64>, noise: Noise, truths: impl Fn(&mut Chance) -> Vec<Truth>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let truths = truths(&mut Chance::new(seed));
        tally.count(seed, &truths, &tell(&truths, noise, seed));
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

/// Contention that is always there leaves no pass in which the truth could be seen.
#[test]
fn under_heavy_noise_nothing_wrong_is_told() {
    let tally = tally(200..220, HEAVY, two);
    assert_eq!(tally.wrong, [] as [String; 0]);
}

/// One or two levels as they are built, and what steady contention holds of them: up to a quarter of all ways, or single entries.
fn beside_a_steady_neighbor(chance: &mut Chance) -> (Vec<Truth>, [Held; 2]) {
    let first = Truth::built(chance, 16, 128);
    let second = Truth::built(chance, 6 * first.entries(), 4096);
    let mut held = |truth: Truth| match (chance.within(0, 3), truth.ways / 4) {
        (0, _) => Held::default(),
        (1, _) | (_, 0) => Held {
            ways: 0,
            scattered: chance.within(1, truth.sets.min(truth.entries() / 4)),
        },
        (_, most) => Held {
            ways: chance.within(1, most),
            scattered: 0,
        },
    };
    (vec![first, second], [held(first), held(second)])
}

/// Does the part that contention leaves look just as a TLB that is built?
pub(super) fn passes_for_built(truth: Truth, held: Held) -> bool {
    let left = Truth {
        ways: truth.ways - held.ways,
        ..truth
    };
    let entries = Entries::exactly(left.entries());
    held.is_whole() && built(entries, Some(left.associativity())) == left.entries()
}

/// Counts runs on machines whose CPUID is silent, with steady contention on all of them that pauses so often.
fn beside_one_that_stays(seeds: std::ops::Range<u64>, noise: Noise, away: f64) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let (truths, holds) = beside_a_steady_neighbor(&mut Chance::new(seed));
        let all_the_time =
            |(&truth, &held): (&Truth, &Held)| away == 0.0 && held.ways > 0 && passes_for_built(truth, held);
        if truths.iter().zip(&holds).any(all_the_time) {
            continue;
        }
        let steady = Steady { holds, away };
        let mut told = tell(&truths, Noise { steady, ..noise }, seed);
        told.iter_mut().for_each(|level| level.widen(&[]));
        tally.count(seed, &truths, &told);
    }
    tally
}

/// What it leaves is reported as it is, but no TLB is built so: a range up to one that is.
#[test]
fn beside_one_that_always_holds_the_same_nothing_wrong_is_told_unless_what_it_leaves_could_have_been_built() {
    for noise in [QUIET, MODERATE] {
        let tally = beside_one_that_stays(5000..5024, noise, 0.0);
        assert_eq!(tally.wrong, [] as [String; 0]);
        assert!(2 * (tally.exact + tally.ranged) > tally.levels(), "{tally:?}");
    }
}

/// In fewer, none of them may be among those whose sets distinguish.
#[test]
fn beside_one_that_is_away_in_a_tenth_of_the_passes_nothing_wrong_is_told() {
    for (noise, away) in [(QUIET, 0.1), (QUIET, 0.3), (MODERATE, 0.1), (MODERATE, 0.3)] {
        let tally = beside_one_that_stays(6000..6012, noise, away);
        assert_eq!(tally.wrong, [] as [String; 0], "away in {away} of the passes");
    }
}

#[test]
fn the_tlbs_of_the_cpu_table_are_built_as_is_assumed_but_for_one_that_the_table_names() {
    let loads = |cpu: &'static translation::cpus::Cpu| cpu.tlb.iter().filter(|row| row.kind.serves_loads());
    let odd = |cpu: &&'static translation::cpus::Cpu| {
        loads(cpu).any(|row| built(Entries::exactly(row.entries), row.ways) != row.entries)
    };
    let odd: Vec<&str> = translation::cpus::table()
        .iter()
        .filter(odd)
        .map(|cpu| cpu.id.as_str())
        .collect();
    assert_eq!(odd, ["epyc-7551", "neoverse-n1"]);
}
