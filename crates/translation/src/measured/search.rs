//! Which caches explain measured times best: parts of the last one are tried, and other ways to replace lines.

use super::curve::{LINE, size};
use crate::engine::Counts;
use crate::machine::Machine;
use crate::measured::fit::{Costs, Known, Timed, explain};
use crate::patterns::Pattern;
use crate::study::{Setting, engine, on_all_cpus, walkers};
use crate::tlb::sets::Replacement;
use crate::walk::caches::{Cache, PLACES};
use crate::walk::scatter::Scatter;
use crate::walk::spec::WalkerSpec;
use model::Bytes;

/// One point of the curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) setting: Setting,
    pub(super) working_set: u64,
    pub(super) cycles: f64,
    /// Where its base pages lay.
    pub(super) scatter: Option<Scatter>,
}

/// Parts of the last cache that are tried for what others leave, then those beside them.
const OCTAVES: u32 = 6;
/// With fewer points the last cache is taken as it is.
const ENOUGH: usize = 4;
/// What another cost has to leave of the error to count.
const CLEARLY: f64 = 0.8;
/// Accesses that are counted for a point.
const COUNTED: u64 = 100_000;
/// Seed of the chase; any.
const SEED: u64 = 1;

/// The machine with the usual page-walk caches alone: others hardly change which data caches explain the times, and each takes as long to simulate.
fn with_usual_walker(machine: &Machine) -> Machine {
    let usual = walkers(machine).swap_remove(0);
    Machine {
        walk_caches: Some(usual.caches),
        nested_tlb: Some(usual.nested_tlb),
        ..machine.clone()
    }
}

/// With the page-walk caches that explain the times best, on the caches that were found.
pub(super) fn with_its_walker(machine: &Machine, steps: &[Step], known: &Known, found: Found) -> Option<Found> {
    let machine = Machine {
        caches: found.caches,
        ..machine.clone()
    };
    let counted = counted(&machine, steps);
    Some(self::found(machine, steps, known, &counted))
}

/// The costs that fit best, for the caches that fit best.
pub(super) struct Found {
    pub(super) caches: Vec<Cache>,
    pub(super) costs: Costs,
    /// How far times are off, on average, whose working sets are little larger than the caches before the last one: what these keep shows there alone.
    near_error: f64,
    /// Places in which some point finds more than a few of its lines.
    pub(super) is_seen: [bool; PLACES],
    /// The sizes of the page-walk caches, if they explain the times clearly better than the usual ones.
    pub(super) walker: Option<WalkerSpec>,
}

/// What caches behind the first one may do in place of LRU. No maker publishes it; random replacement keeps a part of a ring that is too large.
pub(super) const OTHER: Replacement = Replacement::Random;

/// The machine's caches, with a share of the sets of the last one, and its replacement.
fn caches(machine: &Machine, share: f64, replacement: Replacement) -> Option<Vec<Cache>> {
    let mut caches = machine.caches.clone();
    let (last, nearer) = caches.split_last_mut()?;
    last.replacement = replacement;
    last.sets = (f64::from(last.sets) * share) as u32;
    let is_smaller = share < 1.0 && nearer.last().is_some_and(|nearer| size(last) <= size(nearer));
    (last.sets > 0 && !is_smaller).then_some(caches)
}

/// Which caches are tried, and what is counted on them: neither depends on costs.
pub(super) struct Search<'a> {
    machine: Machine,
    steps: &'a [Step],
    counted: Vec<(Vec<Cache>, Vec<Counts>)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(machine: &Machine, steps: &'a [Step]) -> Self {
        Self {
            machine: with_usual_walker(machine),
            steps,
            counted: Vec::new(),
        }
    }

    /// The caches that explain the steps best, with their costs.
    pub(super) fn best(&mut self, known: &Known) -> Option<Found> {
        let octaves = if self.steps.len() < ENOUGH { 1 } else { OCTAVES };
        let shares = (0..octaves).map(|octave| 0.5_f64.powi(octave as i32));
        let (share, coarse) = self.best_share(shares, Replacement::Lru, known)?;
        if octaves == 1 {
            return Some(coarse);
        }
        let between = [0.75, 1.5].map(|factor| share * factor);
        let between = between.into_iter().filter(|&share| share < 1.0);
        let finer = self.best_share(between, Replacement::Lru, known);
        let (share, usual) = match finer {
            Some(finer) if finer.1.costs.error < coarse.costs.error => finer,
            _ => (share, coarse),
        };
        // What is replaced at random looks like a larger cache under LRU.
        let parts = [1.0, 0.75, 0.5].map(|part| share * part);
        let other = self.best_share(parts.into_iter(), OTHER, known);
        let best = usual.or(other.map(|(_, found)| found), |found| found.costs.error);
        let mut caches = best.caches.clone();
        let behind = 1..caches.len() - 1;
        if behind.is_empty() {
            return Some(best);
        }
        caches[behind].iter_mut().for_each(|cache| cache.replacement = OTHER);
        let other = self.found(caches, known);
        Some(best.or(Some(other), |found| found.near_error))
    }

    /// The best share of the last cache, and what is found with it.
    fn best_share(
        &mut self,
        shares: impl Iterator<Item = f64>,
        replacement: Replacement,
        known: &Known,
    ) -> Option<(f64, Found)> {
        let tried = shares.filter_map(|share| {
            let caches = caches(&self.machine, share, replacement)?;
            Some((share, self.found(caches, known)))
        });
        tried.min_by(|one, other| one.1.costs.error.total_cmp(&other.1.costs.error))
    }

    fn found(&mut self, caches: Vec<Cache>, known: &Known) -> Found {
        let machine = Machine {
            caches,
            ..self.machine.clone()
        };
        let place = self.counted.iter().position(|(caches, _)| *caches == machine.caches);
        let place = place.unwrap_or_else(|| {
            let counted = counted(&machine, self.steps);
            self.counted.push((machine.caches.clone(), counted));
            self.counted.len() - 1
        });
        found(machine, self.steps, known, &self.counted[place].1)
    }
}

impl Found {
    /// Another one, if it is less far off.
    fn or(self, other: Option<Self>, error: impl Fn(&Self) -> f64) -> Self {
        match other {
            Some(other) if error(&other) < error(&self) => other,
            _ => self,
        }
    }
}

/// What each step counts.
fn counted(machine: &Machine, steps: &[Step]) -> Vec<Counts> {
    on_all_cpus(steps, &|_, _| {}, |step| count(machine, step))
}

fn found(machine: Machine, steps: &[Step], known: &Known, counted: &[Counts]) -> Found {
    let is_seen = std::array::from_fn(|place| {
        let share = |counts: &Counts| counts.walkers[0].data_lines[place] as f64 / counts.accesses as f64;
        counted.iter().any(|counts| share(counts) > 0.05)
    });
    let (costs, walker) = simplest(steps, counted, known);
    let near = 4 * machine.caches.iter().rev().nth(1).map_or(0, size);
    let off = |(step, counts): (&Step, &Counts)| {
        let is_near = step.working_set <= near;
        is_near.then(|| (costs.cycles(&counts.with_walker(walker)) / step.cycles - 1.0).abs())
    };
    let off: Vec<f64> = steps.iter().zip(counted).filter_map(off).collect();
    Found {
        costs,
        near_error: off.iter().sum::<f64>() / off.len().max(1) as f64,
        is_seen,
        walker: (walker > 0).then(|| walkers(&machine).swap_remove(walker)),
        caches: machine.caches,
    }
}

/// Costs and the walker they go with. Another than the usual one, or a cost of walks besides their reads, count only where they explain the times
/// clearly better: a host's walks on huge pages look much like memory.
fn simplest(steps: &[Step], counted: &[Counts], known: &Known) -> (Costs, usize) {
    let pairs = pairs(steps);
    let with = |walker: usize, walk: Option<f64>| {
        let of = |(step, counts): (&Step, &Counts)| Timed {
            counts: counts.with_walker(walker),
            cycles: step.cycles,
        };
        let timed: Vec<Timed> = steps.iter().zip(counted).map(of).collect();
        let known = Known { walk, ..*known };
        (explain(&timed, &pairs, &known), walker)
    };
    let usual = with(0, known.walk.or(Some(0.0)));
    if known.walk_reads.is_some() {
        return usual;
    }
    let walkers = counted.first().map_or(1, |counts| counts.walkers.len());
    let may_be = |(costs, _): &(Costs, usize)| known.short_walk.is_none_or(|short| costs.walk <= short);
    let free = (known.walk.is_none()).then(|| with(0, None)).filter(may_be);
    let others = (1..walkers).map(|walker| with(walker, known.walk.or(Some(0.0))));
    let better = |one: &(Costs, usize), other: &(Costs, usize)| one.0.error.total_cmp(&other.0.error);
    let other = others.chain(free).min_by(better);
    other
        .filter(|(costs, _)| costs.error < CLEARLY * usual.0.error)
        .unwrap_or(usual)
}

/// Points with the same working set on two page sizes.
fn pairs(steps: &[Step]) -> Vec<(usize, usize)> {
    let is_pair = |one: &Step, other: &Step| {
        one.working_set == other.working_set && one.setting.guest_page < other.setting.guest_page
    };
    let all = steps.iter().enumerate();
    all.flat_map(|(place, one)| {
        let beside = steps.iter().position(|other| is_pair(one, other));
        beside.map(|other| (place, other))
    })
    .collect()
}

/// A point in its steady state, with each of the page-walk caches that are swept.
pub(super) fn count(machine: &Machine, step: &Step) -> Counts {
    let mut machine = machine.clone();
    machine.surroundings.scatter = step.scatter;
    let mut chase = Pattern::Chase.over(Bytes(step.working_set), SEED);
    let lines: u64 = machine.caches.iter().map(Cache::lines).sum();
    let warm_up = (lines + lines / 4 + COUNTED).min(2 * step.working_set / LINE);
    engine(&machine, step.setting).run_pattern(&mut chase, warm_up, COUNTED)
}
