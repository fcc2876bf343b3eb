//! What was sampled at one point so far, and whether it is enough. Pure.

use chase::block::Block;
use chase::counters::Counts;
use model::Estimate;
use model::latency::{Counters, Dropped, Quiet, Stopped};

use crate::{rounds, stats};

/// A point is settled when half the 95 % interval of its median is within this share of it.
const NARROW: f64 = 0.01;
/// Visits before a point may be called settled: neighbours and clocks change slower than a visit lasts.
const LEAST_VISITS: usize = 3;
/// Consecutive blocks whose median counts as one independent value.
const BATCH: usize = 8;
/// Batches before an interval means anything.
const LEAST_BATCHES: usize = 8;

/// This share of the samples, the shortest ones, is taken to be undisturbed.
const QUIET: f64 = 0.005;
/// Samples within this share of the quiet ones count as quiet, too.
const AS_QUIET: f64 = 0.03;

/// Blocks before and after one whose clock readings tell its clock, too: a core clock holds for longer than the millisecond
/// or two that these take.
const NEARBY: usize = 20;
/// The clock of a block is this quantile of them, or its own reading if that is faster. A neighbour can slow the multiplications
/// of a reading down but not hurry them, and a block beside a slowed reading would look shorter than any step can be.
const FASTEST: f64 = 0.9;

/// What one visit to a point gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Visit {
    pub(super) blocks: Vec<Block>,
    /// A counted stretch and its steps, where there is a PMU.
    pub(super) counted: Option<(Counts, u64)>,
}

/// All samples of one point.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    ticks: Vec<f64>,
    cycles: Vec<f64>,
    clocks: Vec<f64>,
    visits: Vec<f64>,
    dropped: Dropped,
    counts: Counts,
    counted_steps: u64,
    stopped: Option<Stopped>,
}

impl Samples {
    /// Takes the undisturbed blocks of a visit in, and counts the others.
    pub(super) fn add(&mut self, visit: &Visit) {
        let before = self.ticks.len();
        for block in &visit.blocks {
            if block.migrated {
                self.dropped.migrations += 1;
            } else if block.switched {
                self.dropped.switches += 1;
            } else if block.clock_changed() {
                self.dropped.clock += 1;
            } else {
                self.ticks.push(block.ticks);
                self.clocks.push(block.clock());
            }
        }
        let clocks = unhurried(&self.clocks[before..]);
        let by_clock = self.ticks[before..].iter().zip(clocks);
        self.cycles.extend(by_clock.map(|(ticks, clock)| ticks * clock));
        self.visits.extend(stats::median(&self.ticks[before..]));
        if let Some((counts, steps)) = visit.counted {
            self.counts.instructions += counts.instructions;
            self.counts.dtlb_misses += counts.dtlb_misses;
            self.counted_steps += steps;
        }
        if self.is_settled() {
            self.stopped = Some(Stopped::Interval);
        }
    }

    fn is_settled(&self) -> bool {
        self.visits.len() >= LEAST_VISITS
            && self.ticks.len() >= BATCH * LEAST_BATCHES
            && self.ticks().is_some_and(|estimate| estimate.relative_error() <= NARROW)
    }

    /// Its budget is spent.
    pub(super) fn close(&mut self) {
        self.stopped.get_or_insert(Stopped::Budget);
    }

    /// Is nothing more to be sampled here?
    pub(super) fn is_closed(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why sampling ended.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// Ticks of the time stamp counter per step.
    pub(super) fn ticks(&self) -> Option<Estimate> {
        stats::batched(&self.ticks, BATCH)
    }

    /// Core cycles per step.
    pub(super) fn cycles(&self) -> Option<Estimate> {
        stats::batched(&self.cycles, BATCH)
    }

    /// What a step costs while nobody disturbs; `ticks_per_ns` as of the time stamp counter.
    pub(super) fn quiet(&self, ticks_per_ns: f64) -> Option<Quiet> {
        let ticks = stats::quantile(&stats::sorted(&self.ticks), QUIET)?;
        let cycles = stats::quantile(&stats::sorted(&self.cycles), QUIET)?;
        let alike = self.cycles.iter().filter(|&&other| other <= cycles * (1.0 + AS_QUIET));
        Some(Quiet {
            ns: ticks / ticks_per_ns,
            cycles,
            share: alike.count() as f64 / self.cycles.len() as f64,
        })
    }

    /// Core cycles per tick, sample by sample.
    pub(super) fn clocks(&self) -> &[f64] {
        &self.clocks
    }

    /// Samples that were thrown away.
    pub(super) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Ticks per step in the median, visit by visit.
    pub(super) fn medians(&self) -> &[f64] {
        &self.visits
    }

    /// Visits that gave samples.
    pub(super) fn visits(&self) -> usize {
        self.visits.len()
    }

    /// How far the medians of the visits lie apart, as a share of the smallest.
    pub(super) fn disagreement(&self) -> f64 {
        rounds::disagreement(&self.visits)
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
mod tests {
    use super::{NEARBY, Samples, Visit};
    use chase::block::Block;
    use chase::counters::Counts;
    use model::latency::Stopped;

    fn block(ticks: f64) -> Block {
        Block {
            ticks,
            clock: [1.0, 1.0],
            switched: false,
            migrated: false,
        }
    }

    fn visit(values: impl IntoIterator<Item = f64>) -> Visit {
        Visit {
            blocks: values.into_iter().map(block).collect(),
            counted: None,
        }
    }

    #[test]
    fn disturbed_blocks_are_counted_and_never_used() {
        let mut samples = Samples::default();
        let blocks = vec![
            block(10.0),
            Block {
                switched: true,
                ..block(99.0)
            },
            Block {
                migrated: true,
                ..block(99.0)
            },
            Block {
                clock: [1.0, 0.5],
                ..block(99.0)
            },
        ];
        samples.add(&Visit { blocks, counted: None });
        let dropped = samples.dropped();
        assert_eq!((dropped.switches, dropped.migrations, dropped.clock), (1, 1, 1));
        assert_eq!(samples.ticks().expect("one sample").median, 10.0);
    }

    #[test]
    fn quiet_samples_settle_after_three_visits_and_not_before() {
        let mut samples = Samples::default();
        for round in 1..=3 {
            samples.add(&visit((0..200).map(|n| 100.0 + f64::from(n % 3) * 0.1)));
            assert_eq!(samples.is_closed(), round == 3);
        }
        assert_eq!(samples.stopped(), Some(Stopped::Interval));
    }

    #[test]
    fn wild_samples_never_settle_and_say_that_the_budget_ended_them() {
        let mut samples = Samples::default();
        for _ in 0..5 {
            samples.add(&visit((0..100).map(|n| if (n / 8) % 2 == 0 { 100.0 } else { 150.0 })));
        }
        assert!(!samples.is_closed());
        samples.close();
        assert_eq!(samples.stopped(), Some(Stopped::Budget));
    }

    #[test]
    fn a_neighbour_moves_the_median_but_not_the_quiet_step() {
        let mut samples = Samples::default();
        samples.add(&visit(
            (0..1000).map(|n| if n % 10 == 0 { 4.0 } else { 5.0 + f64::from(n % 7) }),
        ));
        let quiet = samples.quiet(2.0).expect("samples");
        assert_eq!((quiet.ns, quiet.cycles, quiet.share), (2.0, 4.0, 0.1));
        assert!(samples.cycles().expect("samples").median > 7.0);
    }

    #[test]
    fn a_clock_that_was_slowed_while_it_was_read_makes_no_step_look_shorter() {
        let slowed = |n: usize| if n.is_multiple_of(3) { 0.9 } else { 1.0 };
        let blocks = (0..300).map(|n| Block {
            clock: [slowed(n); 2],
            ..block(4.0)
        });
        let mut samples = Samples::default();
        samples.add(&Visit {
            blocks: blocks.collect(),
            counted: None,
        });
        assert_eq!(samples.quiet(1.0).expect("samples").cycles, 4.0);
        assert_eq!(samples.cycles().expect("samples").median, 4.0);
    }

    #[test]
    fn cycles_follow_a_clock_that_changes_during_a_visit() {
        let slow = 20 * NEARBY;
        let blocks = (0..2 * slow).map(|n| Block {
            clock: [if n < slow { 0.5 } else { 1.0 }; 2],
            ..block(if n < slow { 8.0 } else { 4.0 })
        });
        let mut samples = Samples::default();
        samples.add(&Visit {
            blocks: blocks.collect(),
            counted: None,
        });
        let quiet = samples.quiet(1.0).expect("samples");
        assert_eq!(quiet.cycles, 4.0);
        assert!(quiet.share > 0.95, "{}", quiet.share);
    }

    #[test]
    fn visits_that_disagree_say_by_how_much() {
        let mut samples = Samples::default();
        samples.add(&visit([100.0; 20]));
        samples.add(&visit([130.0; 20]));
        assert!((samples.disagreement() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn counters_are_per_step_and_the_miss_rate_per_instruction() {
        let mut samples = Samples::default();
        let counts = Counts {
            instructions: 1125,
            dtlb_misses: 900,
        };
        samples.add(&Visit {
            blocks: vec![block(1.0)],
            counted: Some((counts, 1000)),
        });
        let counters = samples.counters().expect("counted");
        assert!((counters.dtlb_misses - 0.9).abs() < 1e-9);
        assert!((counters.miss_rate - 0.8).abs() < 1e-9);
    }
}
