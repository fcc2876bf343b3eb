//! What was sampled at one point so far, and whether it is enough. Pure.

use std::collections::BTreeMap;

use model::{Backing, Estimate, Reading, Unread};

use super::worker::{Proved, Taken};
use crate::{rounds, stats};

/// A point is settled when half the 95 % interval of its median is within this share of it.
const NARROW: f64 = 0.02;
/// Visits before a point may be called settled: other processes, other page tables, other neighbours.
const LEAST_VISITS: usize = 3;
/// Consecutive samples whose median counts as one independent value.
const BATCH: usize = 4;
/// Samples before an interval means anything.
const LEAST_SAMPLES: usize = 8 * BATCH;

/// What one visit gave: one set of samples from each worker, or why there are none.
pub(super) type Visit = Result<Vec<Taken>, String>;

/// All samples of one point.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    ticks: Vec<f64>,
    visits: Vec<f64>,
    dropped: u64,
    operations: u64,
    counts: BTreeMap<String, u64>,
    backing: Backing,
    account: String,
    unproved: Option<Unread>,
    refused: Option<String>,
    closed: bool,
}

impl Samples {
    /// Takes a visit in. A refusal ends the point: what fails once would not be the same each time.
    pub(super) fn add(&mut self, visit: Visit) {
        match visit {
            Ok(workers) => self.take(workers),
            Err(why) => {
                self.refused = Some(why);
                self.closed = true;
            }
        }
    }

    fn take(&mut self, workers: Vec<Taken>) {
        let before = self.ticks.len();
        for taken in workers {
            self.ticks.extend(taken.ticks);
            self.dropped += taken.dropped;
            self.operations += taken.operations;
            for (name, count) in taken.counts {
                *self.counts.entry(name).or_default() += count;
            }
            match taken.proof {
                Some(Reading::Known(Proved { got, account })) => {
                    self.backing.extend(got.iter());
                    self.account = account;
                }
                Some(Reading::Unread(why)) => self.unproved = Some(why),
                None => {}
            }
        }
        self.visits.extend(stats::median(&self.ticks[before..]));
        self.closed |= self.is_settled();
    }

    /// Is the interval narrow enough?
    pub(super) fn is_settled(&self) -> bool {
        self.visits.len() >= LEAST_VISITS
            && self.ticks.len() >= LEAST_SAMPLES
            && self.ticks().is_some_and(|estimate| estimate.relative_error() <= NARROW)
    }

    /// Is nothing more to be sampled here?
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Ticks of the time stamp counter per operation.
    pub(super) fn ticks(&self) -> Option<Estimate> {
        stats::batched(&self.ticks, BATCH)
    }

    /// Why it could not be done.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// What backed the memory over all visits, and which account says so; or why that is not known.
    pub(super) fn proof(&self) -> Result<(&Backing, &str), &Unread> {
        match &self.unproved {
            Some(why) => Err(why),
            None => Ok((&self.backing, &self.account)),
        }
    }

    /// Operations that were timed.
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// Samples that were kept.
    pub(super) fn kept(&self) -> u64 {
        self.ticks.len() as u64
    }

    /// Samples that were thrown away.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A count, per operation.
    pub(super) fn per_operation(&self, name: &str) -> f64 {
        self.counts.get(name).copied().unwrap_or(0) as f64 / self.operations.max(1) as f64
    }

    /// How far the medians of the visits lie apart, as a share of the smallest.
    pub(super) fn disagreement(&self) -> f64 {
        rounds::disagreement(&self.visits)
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;
    use crate::kernelops::worker::Taken;

    fn taken(ticks: impl IntoIterator<Item = f64>) -> Taken {
        Taken {
            ticks: ticks.into_iter().collect(),
            dropped: 1,
            operations: 100,
            counts: [("faults".to_owned(), 200)].into(),
            proof: None,
        }
    }

    #[test]
    fn workers_are_pooled_and_counts_are_per_operation() {
        let mut samples = Samples::default();
        samples.add(Ok(vec![taken([1.0; 10]), taken([3.0; 11])]));
        assert_eq!(samples.ticks().expect("samples").median, 3.0);
        assert_eq!((samples.kept(), samples.dropped(), samples.operations()), (21, 2, 200));
        assert_eq!(samples.per_operation("faults"), 2.0);
        assert_eq!(samples.per_operation("signals"), 0.0);
    }

    #[test]
    fn quiet_samples_settle_after_three_visits_and_wild_ones_never() {
        let (mut quiet, mut wild) = (Samples::default(), Samples::default());
        for visit in 1..=5 {
            quiet.add(Ok(vec![taken((0..40).map(|n| 100.0 + f64::from(n % 3) * 0.1))]));
            wild.add(Ok(vec![taken(
                (0..40).map(|n| if n / 4 % 2 == 0 { 100.0 } else { 200.0 }),
            )]));
            assert_eq!(quiet.is_closed(), visit >= 3);
        }
        assert!(!wild.is_closed());
    }

    #[test]
    fn a_refusal_ends_a_point_even_after_samples() {
        let mut samples = Samples::default();
        samples.add(Ok(vec![taken([1.0; 10])]));
        samples.add(Err("the pool is short".to_owned()));
        assert!(samples.is_closed());
        assert_eq!(samples.refused(), Some("the pool is short"));
    }

    #[test]
    fn visits_that_disagree_say_by_how_much() {
        let mut samples = Samples::default();
        samples.add(Ok(vec![taken([100.0; 8])]));
        samples.add(Ok(vec![taken([130.0; 8])]));
        assert!((samples.disagreement() - 0.3).abs() < 1e-9);
    }
}
