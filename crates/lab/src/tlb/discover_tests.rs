//! The discovery against simulated TLBs of any geometry, with the noise of real machines added.

use std::collections::HashMap;

use model::Bytes;
use model::tlb::{Index, Ways};
use proptest::prelude::*;
use sim::tlb::{Array, Replacement, Tlb};

use super::{Discovery, Effort, Found, discover};
use crate::tlb::occupancy::shuffled;
use crate::tlb::probe::{Limits, Oracle, Probe, Sweep};

const PAGE: Bytes = Bytes::kib(4);
const HIT: f64 = 5.0;

/// What disturbs a measurement, each from 0 (never) to 1.
#[derive(Clone, Copy, Debug, Default)]
struct Noise {
    /// Every cost is up to this share too high.
    jitter: f64,
    /// Share of costs with a large spike on top.
    spikes: f64,
    /// Share of passes during which a neighbour takes a part of the entries.
    polluted: f64,
}

const BUSY: Noise = Noise {
    jitter: 0.03,
    spikes: 0.05,
    polluted: 0.5,
};

struct Simulated {
    arrays: Vec<Array>,
    walk: f64,
    noise: Noise,
    random: u64,
    costs: HashMap<(Probe, bool), f64>,
}

impl Simulated {
    fn new(arrays: &[Array], walk: f64, noise: Noise) -> Self {
        Self {
            arrays: arrays.to_vec(),
            walk,
            noise,
            random: 0x1234_5678_9abc_def1,
            costs: HashMap::new(),
        }
    }

    fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The cost of a lap when all is warm; a neighbour touches a quarter as many pages of its own in between.
    fn lap(&self, probe: Probe, polluted: bool) -> f64 {
        let mut tlb = Tlb::new(&self.arrays, self.walk);
        let order = shuffled(probe.pages as usize, u64::from(probe.pages));
        let lru = self.arrays.iter().all(|array| array.replacement == Replacement::Lru);
        let (warm, laps) = if lru { (1, 1) } else { (8, 4) };
        let mut total = 0.0;
        for lap in 0..warm + laps {
            for (at, &index) in order.iter().enumerate() {
                let cost = tlb.access(PAGE, probe.layout.page(index as u32));
                total += if lap < warm { 0.0 } else { cost };
                if polluted && at % 4 == 0 {
                    tlb.access(PAGE, (1 << 30) + at as u64 * 7);
                }
            }
        }
        HIT + total / (laps * order.len()) as f64
    }
}

impl Oracle for Simulated {
    fn limits(&self, sweep: Sweep) -> Limits {
        match sweep {
            Sweep::Near => Limits {
                pages: 256,
                span: 1 << 15,
            },
            // As far as a real oracle goes beyond the largest array, and no further: simulating takes time.
            Sweep::Far => Limits {
                pages: self
                    .arrays
                    .iter()
                    .map(|array| array.sets * array.ways * 9 / 4)
                    .max()
                    .unwrap_or(0)
                    .max(1000),
                span: 1 << 17,
            },
        }
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        // A pass is polluted as a whole: neighbours come and go more slowly than probes.
        let polluted = f64::from(pass.wrapping_mul(2_654_435_769) >> 16) / 65536.0 < self.noise.polluted;
        let cost = match self.costs.get(&(probe, polluted)) {
            Some(&cost) => cost,
            None => {
                let cost = self.lap(probe, polluted);
                self.costs.insert((probe, polluted), cost);
                cost
            }
        };
        let spike = if self.chance() < self.noise.spikes {
            500.0 * self.chance()
        } else {
            0.0
        };
        // Real oracles read up to a per cent too low as well: the clock is read before and after.
        let low = 1.0 - 0.005 * self.chance();
        Some(cost * (low + self.noise.jitter * self.chance()) + spike)
    }
}

fn run(arrays: &[Array], walk: f64, noise: Noise) -> Discovery {
    discover(&mut Simulated::new(arrays, walk, noise), Effort::QUICK, &|| false)
}

/// `(entries, ways)` of the levels found; zero where unknown.
fn answer(discovery: &Discovery) -> Vec<(u32, Option<Ways>)> {
    discovery
        .levels
        .iter()
        .map(|level| (level.entries.map_or(0, |entries| entries.value), level.ways))
        .collect()
}

fn told(discovery: &Discovery) -> String {
    format!(
        "{:#?}",
        discovery
            .levels
            .iter()
            .map(|level| (
                level.entries,
                level.ways,
                level.index,
                level.policy,
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
    let found = run(&base, 21.0, BUSY);
    assert_eq!(
        answer(&found),
        [(96, Some(Ways::Count(6))), (2048, Some(Ways::Count(16)))],
        "{}",
        told(&found)
    );
    assert_eq!(found.levels[1].index, Some(Index::Xor));
    let large = [Array::new(1, PAGE, 8, 4, 0.0), Array::new(2, PAGE, 128, 8, 7.0)];
    let found = run(&large, 21.0, BUSY);
    assert_eq!(
        answer(&found),
        [(32, Some(Ways::Count(4))), (1024, Some(Ways::Count(8)))],
        "{}",
        told(&found)
    );
    assert_eq!(found.levels[1].index, Some(Index::Linear));
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
            polluted: 0.0,
        },
    );
    // Tree replacement of 24 ways misses gently from 25 pages on, so that ways are left open.
    assert_eq!(
        answer(&found),
        [(72, Some(Ways::Full)), (3072, None)],
        "{}",
        told(&found)
    );
}

#[test]
fn a_machine_without_a_second_level_has_none() {
    let found = run(&[Array::new(1, PAGE, 16, 4, 0.0)], 30.0, BUSY);
    assert_eq!(answer(&found), [(64, Some(Ways::Count(4)))], "{}", told(&found));
}

#[test]
fn the_penalty_is_what_the_next_level_costs() {
    let arrays = [Array::new(1, PAGE, 16, 4, 0.0), Array::new(2, PAGE, 128, 12, 9.0)];
    let found = run(&arrays, 40.0, Noise::default());
    for (level, cycles) in found.levels.iter().zip([9.0, 40.0]) {
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
    for seed in 0..3 {
        let mut oracle = Simulated::new(
            &arrays,
            21.0,
            Noise {
                jitter: 8.0,
                spikes: 0.9,
                polluted: 1.0,
            },
        );
        oracle.random ^= seed << 20;
        let found = discover(&mut oracle, Effort::QUICK, &|| false);
        for level in &found.levels {
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
    let found = discover(&mut Simulated::new(&arrays, 30.0, BUSY), Effort::QUICK, &|| true);
    assert!(found.stopped);
    assert!(
        found.levels.iter().all(|level| level.entries.is_none()),
        "{}",
        told(&found)
    );
}

/// Sets and ways with 16 to 4096 entries, from 2 ways to full.
fn geometry(from: u32, to: u32) -> impl Strategy<Value = (u32, u32)> {
    let full = (from..=to).prop_map(|entries| (1, entries));
    let sets = (1u32..=(to / 2).ilog2().min(8)).prop_flat_map(move |bits| {
        let sets = 1 << bits;
        (Just(sets), from.div_ceil(sets).max(2)..=(to / sets).max(2))
    });
    prop_oneof![1 => full, 4 => sets]
}

/// A set-associative level is found exactly. A full one may have any number of entries: it is found within a few of many.
fn is_found(level: Option<&Found>, (sets, ways): (u32, u32)) -> bool {
    let truth = sets * ways;
    level.and_then(|level| level.entries).is_some_and(|entries| {
        let exact = entries.value == truth || sets == 1 && entries.value.abs_diff(truth) * 200 <= truth;
        exact && (entries.low..=entries.high).contains(&truth)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    // Few cases, each a whole discovery; a handful of sets is never hashed.
    #[test]
    fn two_levels_of_any_geometry_are_recovered(first in geometry(16, 128), second in geometry(768, 4096), hashed: bool) {
        let last = Array::new(2, PAGE, second.0, second.1, 7.0);
        let arrays = [Array::new(1, PAGE, first.0, first.1, 0.0), if hashed && second.0 >= 16 { last.hashed() } else { last }];
        let found = run(&arrays, 30.0, BUSY);
        prop_assert_eq!(found.levels.len(), 2, "{}", told(&found));
        prop_assert!(is_found(found.levels.first(), first), "{}", told(&found));
        prop_assert!(is_found(found.levels.get(1), second), "{}", told(&found));
    }

    #[test]
    fn one_level_of_any_geometry_is_recovered(only in geometry(16, 4096)) {
        let found = run(&[Array::new(1, PAGE, only.0, only.1, 0.0)], 30.0, BUSY);
        prop_assert_eq!(found.levels.len(), 1, "{}", told(&found));
        prop_assert!(is_found(found.levels.first(), only), "{}", told(&found));
    }
}
