//! What places, TLB hits and page-table reads cost: the costs that explain measured times by what the simulator counts.
//!
//! Cycles are counts times costs, and a farther place never costs less. So costs are sums of steps that are not negative, and those
//! with the least absolute relative deviations follow from least squares that are weighed anew (Lawson). Only what page-table
//! reads cost relative to loads multiplies the others, and is searched.

use crate::engine::Counts;
use crate::walk::caches::PLACES;

/// A time that was measured, and what is counted where the same is simulated, with one walker.
#[derive(Clone, Debug)]
pub struct Timed {
    pub counts: Counts,
    /// Cycles per access.
    pub cycles: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Latencies of the first places; those behind the first unknown one do not count.
    pub latencies: [Option<f64>; PLACES],
    /// Cycles of a second-level TLB hit.
    pub l2_tlb_hit: Option<f64>,
    /// Cycles of a walk besides its reads.
    pub walk: Option<f64>,
    /// What a walk takes whose reads hit in near caches: that is no less than its cost besides its reads.
    pub short_walk: Option<f64>,
    /// What a page-table read takes, relative to a load.
    pub walk_reads: Option<f64>,
    /// Are addresses of page-table entries translated themselves, by a host? Then their reads may take longer than loads.
    pub is_nested: bool,
}

/// Costs that explain measured times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cycles until data is there from each cache, then from memory.
    pub latencies: [f64; PLACES],
    /// Cycles of a first-level TLB miss that the second level holds.
    pub l2_tlb_hit: f64,
    /// Cycles of a page walk besides its reads.
    pub walk: f64,
    /// What the read of a page-table entry takes, relative to a load from the same place.
    pub walk_reads: f64,
    /// How far the times are off, on average, as a share of them.
    pub error: f64,
}

/// Steps: from each place to the next one, a second-level TLB hit, and a page walk.
const STEPS: usize = PLACES + 2;
const TLB_HIT: usize = PLACES;
const WALK: usize = PLACES + 1;

type Steps = [f64; STEPS];

/// What a time, or the difference of two, consists of: steps as shares of a measured time, and what they should add up to.
struct Row {
    steps: Steps,
    wanted: f64,
}

impl Row {
    fn of(timed: &Timed, walk_reads: f64) -> Self {
        Self {
            steps: taken(&timed.counts, walk_reads).map(|steps| steps / timed.cycles),
            wanted: 1.0,
        }
    }

    /// How much longer one takes than the other, as a share of the first.
    fn difference(one: &Timed, other: &Timed, walk_reads: f64) -> Self {
        let (ones, others) = (taken(&one.counts, walk_reads), taken(&other.counts, walk_reads));
        Self {
            steps: std::array::from_fn(|step| (ones[step] - others[step]) / one.cycles),
            wanted: (one.cycles - other.cycles) / one.cycles,
        }
    }

    fn off(&self, steps: &Steps) -> f64 {
        (0..STEPS).map(|step| self.steps[step] * steps[step]).sum::<f64>() - self.wanted
    }
}

/// Shares of a load's time that are tried for a page-table read. Without a host it waits for nothing that a load from there does not wait for.
fn tried(is_nested: bool) -> impl Iterator<Item = f64> {
    let steps = if is_nested { 60 } else { 20 };
    (0..=steps).map(|step| f64::from(step) * 0.05)
}

/// How often each step is taken per access.
fn taken(counts: &Counts, walk_reads: f64) -> Steps {
    let walks = counts.walkers.first().copied().unwrap_or_default();
    let reads = |place: usize| walks.data_lines[place] as f64 + walk_reads * walks.table_lines[place] as f64;
    let mut taken = [0.0; STEPS];
    for (place, steps) in taken.iter_mut().enumerate().take(PLACES) {
        *steps = (place..PLACES).map(reads).sum();
    }
    taken[TLB_HIT] = counts.second_level_hits() as f64;
    taken[WALK] = walks.walks as f64;
    taken.map(|steps| steps / counts.accesses.max(1) as f64)
}

impl Costs {
    /// Cycles per access.
    pub fn cycles(&self, counts: &Counts) -> f64 {
        let taken = taken(counts, self.walk_reads);
        (0..STEPS).map(|step| taken[step] * self.step(step)).sum()
    }

    fn step(&self, step: usize) -> f64 {
        match step {
            0 => self.latencies[0],
            TLB_HIT => self.l2_tlb_hit,
            WALK => self.walk,
            place => self.latencies[place] - self.latencies[place - 1],
        }
    }

    fn of(steps: Steps, walk_reads: f64, error: f64) -> Self {
        let mut latency = 0.0;
        let latencies = std::array::from_fn(|place| {
            latency += steps[place];
            latency
        });
        Self {
            latencies,
            l2_tlb_hit: steps[TLB_HIT],
            walk: steps[WALK],
            walk_reads,
            error,
        }
    }
}

/// The costs that explain times best. What no time depends on is as cheap as what is before it. The differences of some `pairs` of times count as much as
/// the times: they are small beside all of a time, but show what walks cost.
pub fn explain(timed: &[Timed], pairs: &[(usize, usize)], known: &Known) -> Costs {
    let at = |share: f64| {
        let differences = pairs
            .iter()
            .map(|&(one, other)| Row::difference(&timed[one], &timed[other], share));
        let rows: Vec<Row> = timed
            .iter()
            .map(|timed| Row::of(timed, share))
            .chain(differences)
            .collect();
        at(&rows, known, share)
    };
    let best = |shares: &mut dyn Iterator<Item = f64>| {
        let costs = shares.map(at);
        costs.min_by(|one, other| one.error.total_cmp(&other.error))
    };
    let found = match known.walk_reads {
        Some(share) => best(&mut std::iter::once(share)),
        None => best(&mut tried(known.is_nested)),
    };
    found.unwrap_or_else(|| at(1.0))
}

/// Rounds of weighing anew.
const ROUNDS: usize = 40;
/// Deviations below this share count alike: clocks in tables are rounded to whole ones.
const ALIKE: f64 = 0.005;

fn at(rows: &[Row], known: &Known, walk_reads: f64) -> Costs {
    let fixed = fixed(known);
    let mut steps = fixed.map(|step| step.unwrap_or(0.0));
    let mut weights = vec![1.0; rows.len()];
    for _ in 0..ROUNDS {
        steps = least_squares(rows, &weights, &fixed, steps);
        for (weight, row) in weights.iter_mut().zip(rows) {
            *weight = 1.0 / row.off(&steps).abs().max(ALIKE);
        }
    }
    let error = rows.iter().map(|row| row.off(&steps).abs()).sum::<f64>() / rows.len().max(1) as f64;
    Costs::of(steps, walk_reads, error)
}

/// Steps between latencies that are known.
fn fixed(known: &Known) -> [Option<f64>; STEPS] {
    let mut fixed = [None; STEPS];
    let mut before = 0.0;
    for (step, latency) in fixed
        .iter_mut()
        .zip(known.latencies.iter().map_while(|latency| *latency))
    {
        *step = Some((latency - before).max(0.0));
        before = latency;
    }
    fixed[TLB_HIT] = known.l2_tlb_hit;
    fixed[WALK] = known.walk;
    fixed
}

/// Steps, none negative, that bring all rows nearest to what is wanted: one after the other, until none changes.
fn least_squares(rows: &[Row], weights: &[f64], fixed: &[Option<f64>; STEPS], mut steps: Steps) -> Steps {
    let product = |one: usize, other: usize| -> f64 {
        let rows = rows.iter().zip(weights);
        rows.map(|(row, weight)| weight * row.steps[one] * row.steps[other])
            .sum()
    };
    let wanted = |step: usize| -> f64 {
        let rows = rows.iter().zip(weights);
        rows.map(|(row, weight)| weight * row.steps[step] * row.wanted).sum()
    };
    let products: [Steps; STEPS] = std::array::from_fn(|one| std::array::from_fn(|other| product(one, other)));
    let wanted: Steps = std::array::from_fn(wanted);
    for _ in 0..2000 {
        let before = steps;
        for step in (0..STEPS).filter(|&step| fixed[step].is_none() && products[step][step] > 1e-12) {
            let others: f64 = (0..STEPS)
                .filter(|&other| other != step)
                .map(|other| products[step][other] * steps[other])
                .sum();
            steps[step] = ((wanted[step] - others) / products[step][step]).max(0.0);
        }
        let change = |step: usize| (steps[step] - before[step]).abs() > 1e-6 * steps[step];
        if !(0..STEPS).any(change) {
            break;
        }
    }
    steps
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
