//! A simulated machine as an oracle: levels of any geometry, contention for entries, clocks that err and spikes.

use std::collections::HashMap;

use crate::tlb::simulated_tlb::{Array, Replacement, Tlb};
use model::Bytes;
use model::tlb::{Hash, Ways};
use stats::rounds;

use super::probe::{Layout, Limits, Oracle, Probe, Sweep};

pub(super) const PAGE: Bytes = Bytes::kib(4);
/// Cycles of an access that hits everywhere.
pub(super) const HIT: f64 = 5.0;
/// Cycles that the second level adds.
pub(super) const SECOND: f64 = 7.0;
/// Cycles that a walk adds.
pub(super) const WALK: f64 = 25.0;

/// What disturbs a measurement, each from 0 (never) to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    /// Every cost is up to this share too high.
    pub(super) jitter: f64,
    /// Share of costs with a large spike on top.
    pub(super) spikes: f64,
    /// Share of passes in which contention holds entries.
    pub(super) polluted: f64,
    /// Most that contention holds of a level in such a pass.
    pub(super) takes: f64,
    /// The pass in which contention ends for good, if ever.
    pub(super) leaves: Option<u32>,
    /// Another one, which always holds the same.
    pub(super) steady: Steady,
}

/// Contention for the same entries in all passes, or in all but a few.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steady {
    /// What it holds of each level.
    pub(super) holds: [Held; 2],
    /// Share of passes in which it is away.
    pub(super) away: f64,
}

/// What contention holds of one level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Ways of every set: of a fully associative array as many entries.
    pub(super) ways: u32,
    /// About so many single entries, anywhere.
    pub(super) scattered: u32,
}

impl Held {
    fn of(self, array: &Array, set: usize) -> u32 {
        let (each, more) = (self.scattered / array.sets, self.scattered % array.sets);
        let lucky = Chance::new(set as u64).next() * f64::from(array.sets);
        self.ways + each + u32::from(lucky < f64::from(more))
    }

    /// Is a whole number of ways all that it holds?
    pub(super) fn is_whole(self) -> bool {
        self.scattered == 0
    }
}

const ABSENT: Steady = Steady {
    holds: [Held { ways: 0, scattered: 0 }; 2],
    away: 0.0,
};

/// Contention in half of all passes, for up to half of everything.
pub(super) const MODERATE: Noise = Noise {
    jitter: 0.03,
    spikes: 0.05,
    polluted: 0.5,
    takes: 0.5,
    leaves: None,
    steady: ABSENT,
};

/// Nothing but a clock that errs.
pub(super) const QUIET: Noise = Noise {
    jitter: 0.03,
    spikes: 0.05,
    polluted: 0.0,
    takes: 0.0,
    leaves: None,
    steady: ABSENT,
};

/// Contention in all passes, now for more and now for less.
pub(super) const HEAVY: Noise = Noise {
    jitter: 0.3,
    spikes: 0.3,
    polluted: 1.0,
    takes: 0.5,
    leaves: None,
    steady: ABSENT,
};

/// Numbers that look random and are the same in each run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // Near seeds start alike.
        for _ in 0..4 {
            chance.next();
        }
        chance
    }

    /// From 0 to below 1.
    pub(super) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number from a range.
    pub(super) fn within(&mut self, from: u32, to: u32) -> u32 {
        from + (self.next() * f64::from(to - from + 1)) as u32
    }
}

/// What is to be found of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) sets: u32,
    pub(super) ways: u32,
    pub(super) hash: Hash,
    pub(super) replacement: Replacement,
}

impl Truth {
    /// 2 ways to full, a quarter of them full, half of the others hashed.
    pub(super) fn any(chance: &mut Chance, from: u32, to: u32) -> Self {
        let linear = Self {
            sets: 1,
            ways: chance.within(from, to),
            hash: Hash::Linear,
            replacement: Replacement::Lru,
        };
        if chance.next() < 0.25 {
            return linear;
        }
        let sets = 1 << chance.within(1, (to / 2).ilog2().min(8));
        Self {
            sets,
            ways: chance.within(from.div_ceil(sets).max(2), (to / sets).max(2)),
            hash: if chance.next() < 0.5 { Hash::Fold } else { Hash::Linear },
            ..linear
        }
    }

    pub(super) fn built(chance: &mut Chance, from: u32, to: u32) -> Self {
        const WAYS: [u32; 8] = [2, 4, 6, 8, 12, 16, 24, 32];
        const FULL: [u32; 7] = [16, 24, 32, 48, 64, 72, 96];
        loop {
            let any = Self::any(chance, from, to);
            let built = if any.sets == 1 { &FULL[..] } else { &WAYS };
            let ways = built[chance.within(0, built.len() as u32 - 1) as usize];
            let built = Self { ways, ..any };
            if (from..=to).contains(&built.entries()) {
                return built;
            }
        }
    }

    pub(super) fn entries(self) -> u32 {
        self.sets * self.ways
    }

    pub(super) fn associativity(self) -> Ways {
        if self.sets == 1 {
            Ways::Full
        } else {
            Ways::Count(self.ways)
        }
    }

    pub(super) fn array(self, level: u8, cycles: f64) -> Array {
        Array {
            hash: self.hash,
            replacement: self.replacement,
            ..Array::new(level, PAGE, self.sets, self.ways, cycles)
        }
    }
}

pub(super) struct Simulated {
    arrays: Vec<Array>,
    walk: f64,
    noise: Noise,
    seed: u64,
    chance: Chance,
    /// Pages in the second-level sweep at the most.
    far: u32,
    /// Costs in passes without the one that comes and goes, with and without the steady one.
    quiet: HashMap<(Probe, bool), f64>,
    sets: Sets,
    /// A pass, and what contention holds of each set of each array in it.
    held: (u32, Vec<Vec<u32>>),
}

impl Simulated {
    pub(super) fn new(arrays: &[Array], walk: f64, noise: Noise, seed: u64) -> Self {
        Self {
            arrays: arrays.to_vec(),
            walk,
            noise,
            seed,
            chance: Chance::new(seed),
            far: 9000,
            quiet: HashMap::new(),
            sets: Sets::new(),
            held: (u32::MAX, Vec::new()),
        }
    }

    /// The same with no more pages than these in the second-level sweep.
    pub(super) fn small(self, far: u32) -> Self {
        Self { far, ..self }
    }

    fn clean(&mut self, probe: Probe, pass: u32, others: Others) -> f64 {
        if self.held.0 != pass {
            self.held = (pass, others.held(&self.arrays));
        }
        let lap = lap(&self.arrays, self.walk, probe, &mut self.sets, &self.held.1);
        // Where all pages fit, what would be replaced does not matter.
        let is_lru = self.arrays.iter().all(|array| array.replacement == Replacement::Lru);
        if is_lru || lap == HIT + self.arrays[0].cycles {
            lap
        } else {
            stepped(&self.arrays, self.walk, probe, others)
        }
    }

    /// Contention changes more slowly than probes: it lasts for a pass as a whole, or is absent.
    fn others(&self, pass: u32) -> Others {
        let mut chance = Chance::new(self.seed ^ u64::from(pass) << 32);
        let there = self.noise.leaves.is_none_or(|leaves| pass < leaves);
        let passing = (there && chance.next() < self.noise.polluted).then(|| Passing {
            share: self.noise.takes * chance.next(),
            seed: u64::from(pass),
        });
        let steady = (chance.next() >= self.noise.steady.away).then_some(self.noise.steady.holds);
        Others { passing, steady }
    }
}

/// The contention of a pass.
#[derive(Clone, Copy, Default)]
struct Others {
    passing: Option<Passing>,
    steady: Option<[Held; 2]>,
}

impl Others {
    /// Entries that they hold of a set.
    fn take(self, array: &Array, set: usize) -> u32 {
        let steady = self
            .steady
            .map_or(0, |holds| holds[usize::from(array.level) - 1].of(array, set));
        steady + self.passing.map_or(0, |passing| passing.takes(array, set))
    }

    /// Those of all sets of each array.
    fn held(self, arrays: &[Array]) -> Vec<Vec<u32>> {
        let of = |array: &Array| (0..array.sets as usize).map(|set| self.take(array, set)).collect();
        arrays.iter().map(of).collect()
    }
}

/// Contention that comes and goes, for a share of every level.
#[derive(Clone, Copy)]
struct Passing {
    share: f64,
    seed: u64,
}

impl Passing {
    /// Entries that it holds of a set.
    fn takes(self, array: &Array, set: usize) -> u32 {
        let luck = Chance::new(self.seed << 20 ^ set as u64).next();
        (self.share * f64::from(array.ways) + luck) as u32
    }
}

/// By layout and array: the sets that the first pages lie in.
type Sets = HashMap<(Layout, usize), Vec<u32>>;

/// Mean cost of a lap when all is warm, where others hold so much of each set: going round and round, an overfull LRU set always misses
/// and any other never.
fn lap(arrays: &[Array], walk: f64, probe: Probe, sets: &mut Sets, held: &[Vec<u32>]) -> f64 {
    let mut asked: Vec<usize> = (0..probe.pages as usize).collect();
    let mut total = 0.0;
    for (number, (array, held)) in arrays.iter().zip(held).enumerate() {
        total += array.cycles * asked.len() as f64;
        let sets = sets.entry((probe.layout, number)).or_default();
        let new = sets.len() as u32..probe.pages;
        sets.extend(new.map(|index| array.hash.set(probe.layout.page(index), array.sets)));
        let mut filled = held.clone();
        asked.iter().for_each(|&at| filled[sets[at] as usize] += 1);
        asked.retain(|&at| filled[sets[at] as usize] > array.ways);
    }
    HIT + (total + walk * asked.len() as f64) / f64::from(probe.pages)
}

/// The same by doing it, for any replacement.
fn stepped(arrays: &[Array], walk: f64, probe: Probe, others: Others) -> f64 {
    let mut tlb = Tlb::beside(arrays, walk, |array, set| others.take(array, set as usize));
    let order = rounds::order(probe.pages as usize, u64::from(probe.pages), 0);
    let lru = arrays.iter().all(|array| array.replacement == Replacement::Lru);
    let (warm, laps) = match probe.pages {
        _ if lru => (2, 1),
        // Of very many pages each lap is a sample large enough.
        1024.. => (2, 1),
        _ => (8, 4),
    };
    let mut total = 0.0;
    for lap in 0..warm + laps {
        for &index in &order {
            let cost = tlb.access(PAGE, probe.layout.page(index as u32));
            total += if lap < warm { 0.0 } else { cost };
        }
    }
    HIT + total / (laps * order.len()) as f64
}

impl Oracle for Simulated {
    fn limits(&self, sweep: Sweep) -> Limits {
        match sweep {
            Sweep::Near => Limits {
                pages: 256,
                span: 1 << 15,
            },
            Sweep::Far => Limits {
                pages: self.far,
                span: 1 << 17,
            },
        }
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        let others = self.others(pass);
        let quiet = (probe, others.steady.is_some());
        let cost = match self.quiet.get(&quiet) {
            Some(&cost) if others.passing.is_none() => cost,
            _ => self.clean(probe, pass, others),
        };
        if others.passing.is_none() {
            self.quiet.insert(quiet, cost);
        }
        let spike = if self.chance.next() < self.noise.spikes {
            500.0 * self.chance.next()
        } else {
            0.0
        };
        // Real oracles read up to a per cent too low as well: the clock is read before and after.
        let low = 1.0 - 0.005 * self.chance.next();
        Some(cost * (low + self.noise.jitter * self.chance.next()) + spike)
    }
}

#[test]
fn the_cost_of_a_lap_is_what_stepping_through_it_costs() {
    let mut chance = Chance::new(7);
    for _ in 0..30 {
        let first = Truth::any(&mut chance, 16, 64);
        let second = Truth::any(&mut chance, 64, 256);
        let arrays = [first.array(1, 0.0), second.array(2, SECOND)];
        let probe = Probe {
            sweep: Sweep::Near,
            layout: Layout {
                block: chance.within(0, 2),
                ..Layout::strided(chance.within(3, 6))
            },
            pages: chance.within(10, 400),
        };
        let others = Others::default();
        let short = lap(&arrays, WALK, probe, &mut Sets::new(), &others.held(&arrays));
        let long = stepped(&arrays, WALK, probe, others);
        assert!(
            (short - long).abs() < 1e-9,
            "{first:?} {second:?} {probe:?}: {short} {long}"
        );
    }
}
