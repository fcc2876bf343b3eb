//! What was sampled at one point so far, and whether it is enough. Pure.

use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use model::Estimate;
use model::latency::{Bound, Counters, Dropped, Quiet, Stopped};

use super::arrivals::{Arrivals, Kept};
use super::converge::{Approach, Arrival, CLOSE, Meeting, tail};

/// Visits without a single undisturbed block, after which a point is given up.
const MOST_EMPTY: u32 = 6;

/// This share of the samples, the shortest ones, is taken to be undisturbed.
const QUIET: f64 = 0.005;
/// Samples within this share of the quiet ones count as quiet, too.
const AS_QUIET: f64 = 0.03;

/// Blocks before and after one whose clock readings show its clock, too: a core clock holds for longer than the millisecond
/// or two that these take.
const NEARBY: usize = 20;
/// The clock of a block is this quantile of them, or its own reading if that is faster. An SMT sibling can slow the multiplications
/// of a reading down but not hurry them, and a block beside a slowed reading would look shorter than any step can be.
const FASTEST: f64 = 0.9;

/// What one visit to a point gave.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) approach: Approach,
    /// All blocks, from the first step on.
    pub(super) blocks: Vec<Block>,
    pub(super) walked: Duration,
    /// The same in laps of the ring; endless where no cache keeps a line from lap to lap.
    pub(super) laps: f64,
    /// A counted stretch and its steps, where there is a PMU.
    pub(super) counted: Option<(Counts, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) arrivals: Arrivals,
    /// Core cycles per tick, sample by sample.
    pub(super) clocks: Vec<f64>,
    pub(super) dropped: Dropped,
    counts: Counts,
    counted_steps: u64,
    pub(super) stopped: Option<Stopped>,
    empty: u32,
}

impl Samples {
    /// Takes the undisturbed blocks of a visit in, and counts the others.
    pub(super) fn add(&mut self, visit: &Visit) {
        let kept: Vec<&Block> = visit.blocks.iter().filter(|block| self.keeps(block)).collect();
        let ticks: Vec<f64> = kept.iter().map(|block| block.ticks).collect();
        let clocks: Vec<f64> = kept.iter().map(|block| block.clock()).collect();
        let cycles: Vec<f64> = ticks
            .iter()
            .zip(unhurried(&clocks))
            .map(|(t, clock)| t * clock)
            .collect();
        self.clocks.extend(clocks);
        if let Some((counts, steps)) = visit.counted {
            self.counts.instructions += counts.instructions;
            self.counts.dtlb_misses += counts.dtlb_misses;
            self.counted_steps += steps;
        }
        let Some(arrival) = Arrival::of(&ticks) else {
            self.empty += 1;
            if self.empty >= MOST_EMPTY {
                self.close();
            }
            return;
        };
        self.arrivals.add(Kept {
            approach: visit.approach,
            walked: visit.walked,
            laps: visit.laps,
            arrival,
            ticks: tail(&ticks).to_vec(),
            cycles: tail(&cycles).to_vec(),
        });
        if self.is_settled() {
            self.stopped = Some(Stopped::Interval);
        }
    }

    fn keeps(&mut self, block: &Block) -> bool {
        let reason = if block.migrated {
            &mut self.dropped.migrations
        } else if block.switched {
            &mut self.dropped.switches
        } else if block.clock_changed() {
            &mut self.dropped.clock
        } else {
            return true;
        };
        *reason += 1;
        false
    }

    fn is_settled(&self) -> bool {
        let medians = stats::medians(&self.arrivals.converged(|visit| &visit.ticks));
        stats::is_enough(&medians, CLOSE) && self.ticks().is_some_and(|estimate| estimate.relative_error() <= CLOSE)
    }

    /// Its budget is spent.
    pub(super) fn close(&mut self) {
        self.stopped.get_or_insert(Stopped::Budget);
    }

    /// Is nothing more to be sampled here?
    pub(super) fn is_closed(&self) -> bool {
        self.stopped.is_some()
    }

    /// Ticks of the time stamp counter per step; `None` where it has not converged.
    pub(super) fn ticks(&self) -> Option<Estimate> {
        let meeting = self.arrivals.meeting().filter(Meeting::is_met)?;
        let estimate = stats::of_visits(&self.arrivals.converged(|visit| &visit.ticks))?;
        // Between both approaches lies the truth, whatever the spread of either.
        let (warm, cold) = meeting.arrivals();
        Some(Estimate {
            low: estimate.low.min(warm).min(cold),
            high: estimate.high.max(warm).max(cold).max(self.arrivals.later(&meeting)),
            ..estimate
        })
    }

    /// Core cycles per step; `None` where it has not converged. What both approaches leave open of the ticks is open of the
    /// cycles, too: their interval reaches as far beyond the median, as a share, at least.
    pub(super) fn cycles(&self) -> Option<Estimate> {
        let ticks = self.ticks()?;
        let cycles = stats::of_visits(&self.arrivals.converged(|visit| &visit.cycles))?;
        let per_tick = cycles.median / ticks.median;
        Some(Estimate {
            low: cycles.low.min(ticks.low * per_tick),
            high: cycles.high.max(ticks.high * per_tick),
            ..cycles
        })
    }

    /// Between which ticks a step lies that has not converged; `None` where it has, or nothing was sampled.
    pub(super) fn bound(&self) -> Option<Bound> {
        let open = self.ticks().is_none();
        open.then(|| self.arrivals.bound()).flatten()
    }

    /// What an undisturbed step costs; `ticks_per_ns` as of the time stamp counter.
    pub(super) fn quiet(&self, ticks_per_ns: f64) -> Option<Quiet> {
        let all = |of: fn(&Kept) -> &Vec<f64>| self.arrivals.visits.iter().flat_map(of).copied().collect::<Vec<f64>>();
        let every = all(|visit| &visit.cycles);
        let ticks = stats::quantile(&stats::sorted(&all(|visit| &visit.ticks)), QUIET)?;
        let cycles = stats::quantile(&stats::sorted(&every), QUIET)?;
        let alike = every.iter().filter(|&&other| other <= cycles * (1.0 + AS_QUIET));
        Some(Quiet {
            ns: ticks / ticks_per_ns,
            cycles,
            share: alike.count() as f64 / every.len() as f64,
        })
    }

    /// Ticks per step in the median, visit by visit in order of time; none where it has not converged.
    pub(super) fn medians(&self) -> Vec<f64> {
        let converged = self
            .arrivals
            .is_met()
            .then(|| self.arrivals.converged(|visit| &visit.ticks));
        stats::medians(&converged.unwrap_or_default())
    }

    /// Visits that gave samples.
    pub(super) fn visits(&self) -> usize {
        self.arrivals.visits.len()
    }

    /// How far two visits to this point differ on average, as a share.
    pub(super) fn disagreement(&self) -> f64 {
        let medians = stats::medians(&self.arrivals.converged(|visit| &visit.ticks));
        stats::disagreement(&medians).unwrap_or(0.0)
    }

    /// Hardware counters per step.
    pub(super) fn counters(&self) -> Option<Counters> {
        let steps = self.counted_steps as f64;
        (self.counted_steps > 0 && self.counts.instructions > 0).then(|| Counters {
            instructions: self.counts.instructions as f64 / steps,
            dtlb_misses: self.counts.dtlb_misses as f64 / steps,
            walk_cycles: None,
            miss_rate: self.counts.dtlb_misses as f64 / self.counts.instructions as f64,
        })
    }
}

/// The clock of each block, by its reading and those nearby.
fn unhurried(readings: &[f64]) -> impl Iterator<Item = f64> + '_ {
    (0..readings.len()).map(|at| {
        let nearby = &readings[at.saturating_sub(NEARBY)..readings.len().min(at + NEARBY + 1)];
        stats::quantile(&stats::sorted(nearby), FASTEST).map_or(readings[at], |fastest| fastest.max(readings[at]))
    })
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
