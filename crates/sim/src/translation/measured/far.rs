//! What a measured latency curve says of the last cache, of memory and of page walks: the costs with which the simulator reproduces it.
//!
//! A step through much memory is a load and often a page walk. In a guest the host's part of that walk is in every measured time, on huge
//! pages, too, if the host backs them with small ones. So no point of a curve is the latency of memory by itself: points are simulated on the
//! pages that they were measured on, and costs are fitted to all of them at once. What a walk costs is then charged once.

use model::latency::Latency;
use model::{Bytes, PageKind};

use super::curve::{LINE, is_chase, size};
use super::facts::{Measured, clock};
use crate::translation::caches::{Cache, PLACES};
use crate::translation::engine::{Counts, Mode};
use crate::translation::fit::{Costs, Known, Timed, explain};
use crate::translation::machine::{Machine, RowReading};
use crate::translation::names::TooSpread;
use crate::translation::patterns::Pattern;
use crate::translation::scatter::Scatter;
use crate::translation::study::{L2_TLB_HIT, Setting, engine, on_all_cpus, possible, walkers};
use crate::translation::unknown::{LATENCIES, Unknown};
use crate::translation::values::{From, Value, What};
use crate::translation::walker_spec::WalkerSpec;
use crate::ways::Replacement;

/// One point of the curve.
#[derive(Clone, Copy, Debug)]
struct Step {
    setting: Setting,
    working_set: u64,
    cycles: f64,
    /// Where its base pages lay.
    scatter: Option<Scatter>,
}

/// Parts of the last cache that are tried for what others leave, then those beside them.
const OCTAVES: u32 = 6;
/// Points of one page size that are simulated at most.
const MOST: usize = 12;
/// With fewer points the last cache is taken as it is.
const ENOUGH: usize = 4;
/// What another cost has to leave of the error to count.
const CLEARLY: f64 = 0.8;
/// Accesses that are counted for a point.
const COUNTED: u64 = 100_000;
/// Seed of the chase; any.
const SEED: u64 = 1;

/// Finds the size of the last cache, its latency, that of memory, and what page-table reads cost relative to loads, as far as the curve
/// shows them.
pub(super) fn far(machine: &mut Machine, measured: &Measured<'_>, values: &mut Vec<Value>) {
    let Some((latency, source)) = measured.latency else {
        return;
    };
    let Some(last) = machine.caches.len().checked_sub(1).filter(|&last| last > 0) else {
        return;
    };
    let Some((ghz, _)) = clock(measured) else { return };
    let steps = steps(latency, machine, measured, ghz, 2 * size(&machine.caches[last - 1]));
    if steps.is_empty() || machine.latencies[..last].iter().any(Option::is_none) {
        return;
    }
    let mut search = Search {
        machine: with_usual_walker(machine),
        steps: &steps,
        counted: Vec::new(),
    };
    let mut known = known(machine, &steps, &machine.caches[last]);
    let mut found = search.best(&known);
    // Points lie beyond what others leave of the last cache, too: then they show what walks cost.
    let of_part = found
        .as_ref()
        .map(|found| self::known(machine, &steps, &found.caches[last]));
    if let Some(of_part) = of_part.filter(|of_part| known.walk_reads.is_some() && of_part.walk_reads.is_none()) {
        known = of_part;
        found = search.best(&known);
    }
    let found = found.and_then(|found| with_its_walker(machine, &steps, &known, found));
    if let Some(found) = found {
        take(machine, found, &known, source, values);
    }
}

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
fn with_its_walker(machine: &Machine, steps: &[Step], known: &Known, found: Found) -> Option<Found> {
    let machine = Machine {
        caches: found.caches,
        ..machine.clone()
    };
    let counted = counted(&machine, steps)?;
    Some(self::found(machine, steps, known, &counted))
}

/// The machine becomes what was found, and each value says where it comes from.
fn take(machine: &mut Machine, found: Found, known: &Known, source: &str, values: &mut Vec<Value>) {
    let last = machine.caches.len() - 1;
    let whole = size(&machine.caches[last]);
    let mut set = |what: What, value: f64| {
        let new = Value::exact(what, value, From::Measured, source);
        match values.iter_mut().find(|value| value.what == what) {
            Some(value) => *value = new,
            None => values.push(new),
        }
    };
    let part = size(&found.caches[last]);
    if part != whole {
        set(What::CacheBytes { level: last as u8 + 1 }, part as f64);
    }
    if found.caches.iter().any(|cache| cache.replacement == OTHER) {
        machine.readings.push(RowReading::RandomReplacement);
    }
    machine.caches = found.caches;
    for place in [last, PLACES - 1] {
        if found.is_seen[place] {
            machine.latencies[place] = Some(found.costs.latencies[place]);
            set(What::Cost(LATENCIES[place]), found.costs.latencies[place]);
        }
    }
    if known.walk_reads.is_none() {
        machine.walk_reads = Some(found.costs.walk_reads);
        set(What::Cost(Unknown::WalkReads), found.costs.walk_reads);
    }
    if let Some(walker) = found.walker {
        machine.walk_caches = Some(walker.caches);
        machine.nested_tlb = Some(walker.nested_tlb);
        set(What::Cost(Unknown::WalkCaches), f64::from(walker.caches.0[0]));
    }
    if known.walk.is_none() {
        machine.walk = Some(found.costs.walk);
        set(What::Cost(Unknown::Walk), found.costs.walk);
    }
}

/// Near latencies stay as their plateaus show them. What walks cost is distinguished from loads where pages of two sizes miss in the last cache.
fn known(machine: &Machine, steps: &[Step], last: &Cache) -> Known {
    let mut latencies = machine.latencies;
    latencies[machine.caches.len() - 1..].fill(None);
    let beyond = 4 * size(last);
    let mut pages: Vec<Bytes> = steps
        .iter()
        .filter(|step| step.working_set >= beyond)
        .map(|step| step.setting.guest_page)
        .collect();
    pages.dedup();
    let is_one_size = pages.len() < 2;
    Known {
        latencies,
        l2_tlb_hit: machine.l2_tlb_hit.or(Some(L2_TLB_HIT.middle)),
        walk: machine.walk.or(is_one_size.then_some(0.0)),
        walk_reads: is_one_size.then_some(machine.walk_reads.unwrap_or(1.0)),
        is_nested: steps.iter().any(|step| step.setting.mode == Mode::Nested),
    }
}

/// Points from a working set on, those of each page size together, at most [`MOST`] of it.
fn steps(latency: &Latency, machine: &Machine, measured: &Measured<'_>, ghz: f64, from: u64) -> Vec<Step> {
    let mut kinds: Vec<PageKind> = latency.points.iter().map(|point| point.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind: PageKind| {
        let Some(setting) = setting(kind, machine, measured) else {
            return Vec::new();
        };
        let points = latency
            .points
            .iter()
            .filter(|point| point.kind == kind && is_chase(point));
        let far = points.filter(|point| point.bytes.0 >= from);
        let step = far.filter_map(|point| {
            Some(Step {
                setting,
                working_set: point.bytes.0,
                cycles: point.ns?.median * ghz,
                scatter: point.frames.as_ref().map(Scatter::of),
            })
        });
        let mut steps: Vec<Step> = step.collect();
        steps.sort_by_key(|step| step.working_set);
        thinned(&steps)
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Evenly, with both ends.
fn thinned(steps: &[Step]) -> Vec<Step> {
    if steps.len() <= MOST {
        return steps.to_vec();
    }
    let place = |number: usize| number * (steps.len() - 1) / (MOST - 1);
    (0..MOST).map(|number| steps[place(number)]).collect()
}

fn setting(kind: PageKind, machine: &Machine, measured: &Measured<'_>) -> Option<Setting> {
    let guest_page = match kind {
        PageKind::Mthp(_) => return None,
        _ => kind.page_size(measured.base_page, measured.pmd_page),
    };
    let mode = match measured.host_page {
        Some(_) => Mode::Nested,
        None => Mode::Native,
    };
    let setting = Setting {
        mode,
        guest_page,
        host_page: measured.host_page,
    };
    possible(machine, setting).is_ok().then_some(setting)
}

/// The costs that fit best, for the caches that fit best.
struct Found {
    caches: Vec<Cache>,
    costs: Costs,
    /// How far times are off, on average, whose working sets are little larger than the caches before the last one: what these keep shows there alone.
    near_error: f64,
    /// Places in which some point finds more than a few of its lines.
    is_seen: [bool; PLACES],
    /// The sizes of the page-walk caches, if they explain the times clearly better than the usual ones.
    walker: Option<WalkerSpec>,
}

/// What caches behind the first one may do in place of LRU. No maker publishes it; random replacement keeps a part of a ring that is too large.
const OTHER: Replacement = Replacement::Random;

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
struct Search<'a> {
    machine: Machine,
    steps: &'a [Step],
    counted: Vec<(Vec<Cache>, Option<Vec<Counts>>)>,
}

impl Search<'_> {
    /// The caches that explain the steps best, with their costs.
    fn best(&mut self, known: &Known) -> Option<Found> {
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
        Some(best.or(other, |found| found.near_error))
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
            Some((share, self.found(caches, known)?))
        });
        tried.min_by(|one, other| one.1.costs.error.total_cmp(&other.1.costs.error))
    }

    fn found(&mut self, caches: Vec<Cache>, known: &Known) -> Option<Found> {
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
        let counted = self.counted[place].1.as_ref()?;
        Some(found(machine, self.steps, known, counted))
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

/// What each step counts; none if a step touches more memory than can be named.
fn counted(machine: &Machine, steps: &[Step]) -> Option<Vec<Counts>> {
    let counted = on_all_cpus(steps, &|_, _| {}, |step| count(machine, step));
    counted.into_iter().collect::<Result<Vec<Counts>, TooSpread>>().ok()
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
    let free = (known.walk.is_none()).then(|| with(0, None));
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
fn count(machine: &Machine, step: &Step) -> Result<Counts, TooSpread> {
    let mut machine = machine.clone();
    machine.surroundings.scatter = step.scatter;
    let mut engine = engine(&machine, step.setting);
    let mut chase = Pattern::Chase.over(Bytes(step.working_set), SEED);
    let lines: u64 = machine.caches.iter().map(Cache::lines).sum();
    engine.run(
        &mut chase,
        (lines + lines / 4 + COUNTED).min(2 * step.working_set / LINE),
    )?;
    engine.reset_counts();
    engine.run(&mut chase, COUNTED)?;
    Ok(engine.counts())
}

#[cfg(test)]
#[path = "far_tests.rs"]
mod tests;
