//! What was sampled at one point so far, and whether it is enough. Pure.

use std::collections::BTreeMap;

use host::processes::Proof;
use model::{Backing, NotMeasured, Reading, Unread};

use super::worker::Taken;
use crate::visits::Visits;

/// A point is settled when its interval is within this share of its median, after enough visits for that to be no accident
/// ([`stats::is_enough`]): other processes, other page tables, other contention.
const NARROW: f64 = 0.02;

/// What one visit gave: one set of samples from each worker, or why there are none.
pub(super) type Visit = Result<Vec<Taken>, NotMeasured>;

#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) visits: Visits,
    pub(super) dropped: u64,
    pub(super) operations: u64,
    counts: BTreeMap<String, u64>,
    backing: Backing,
    account: String,
    unproved: Option<Unread>,
    /// Why it could not be done. This ends the point: what fails once would not be the same each time.
    pub(super) refused: Option<NotMeasured>,
}

impl Samples {
    /// Takes a visit in.
    pub(super) fn add(&mut self, visit: Visit) {
        match visit {
            Ok(workers) => self.take(workers),
            Err(why) => self.refused = Some(why),
        }
    }

    fn take(&mut self, workers: Vec<Taken>) {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for taken in workers {
            let (first, second) = taken.ticks.split_at(taken.ticks.len() / 2);
            early.extend_from_slice(first);
            late.extend_from_slice(second);
            self.dropped += taken.dropped;
            self.operations += taken.operations;
            for (name, count) in taken.counts {
                *self.counts.entry(name).or_default() += count;
            }
            match taken.proof {
                Some(Reading::Known(Proof { backing, account })) => {
                    self.backing.extend(backing.iter());
                    self.account = account;
                }
                Some(Reading::Unread(why)) => self.unproved = Some(why),
                None => {}
            }
        }
        self.visits.add(&early, &late);
    }

    /// Is the interval narrow enough?
    pub(super) fn is_settled(&self) -> bool {
        stats::is_enough(&self.visits.medians, NARROW)
    }

    /// Is nothing more to be sampled here?
    pub(super) fn is_closed(&self) -> bool {
        self.refused.is_some() || self.is_settled()
    }

    /// What backed the memory over all visits, and which account says so; or why that is not known.
    pub(super) fn proof(&self) -> Result<(&Backing, &str), &Unread> {
        match &self.unproved {
            Some(why) => Err(why),
            None => Ok((&self.backing, &self.account)),
        }
    }

    pub(super) fn per_operation(&self, name: &str) -> f64 {
        self.counts.get(name).copied().unwrap_or(0) as f64 / self.operations.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use model::NotMeasured;

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
        for _ in 0..2 {
            samples.add(Ok(vec![taken([1.0; 10]), taken([3.0; 11])]));
        }
        assert_eq!(samples.visits.estimate().expect("samples").median, 3.0);
        assert_eq!(
            (samples.visits.samples.len(), samples.dropped, samples.operations),
            (42, 4, 400)
        );
        assert_eq!(samples.per_operation("faults"), 2.0);
        assert_eq!(samples.per_operation("signals"), 0.0);
    }

    #[test]
    fn visits_that_agree_settle_after_six_of_them_and_those_that_differ_do_not_however_quiet_each_is() {
        let (mut quiet, mut differing) = (Samples::default(), Samples::default());
        for visit in 1..=8 {
            quiet.add(Ok(vec![taken((0..40).map(|n| 100.0 + f64::from(n % 3) * 0.1))]));
            differing.add(Ok(vec![taken([if visit % 2 == 0 { 100.0 } else { 110.0 }; 40])]));
            assert_eq!(quiet.is_closed(), visit >= 6);
        }
        assert!(!differing.is_closed());
    }

    #[test]
    fn one_visit_has_no_interval() {
        let mut samples = Samples::default();
        samples.add(Ok(vec![taken([1.0; 1000])]));
        assert_eq!((samples.visits.estimate(), samples.visits.disagreement()), (None, None));
    }

    #[test]
    fn a_state_that_comes_back_during_each_visit_shows_in_its_halves() {
        let (mut still, mut moving) = (Samples::default(), Samples::default());
        for visit in 0..6 {
            let noise = f64::from(visit % 2);
            still.add(Ok(vec![taken((0..40).map(|n| 100.0 + noise + f64::from(n % 5)))]));
            moving.add(Ok(vec![taken((0..40).map(|n| 100.0 + noise + f64::from(40 - n)))]));
        }
        assert_eq!(still.visits.moving(1), None);
        let high = moving.visits.moving(1).expect("it falls").high;
        assert!(high.is_some_and(|high| high < 120.0), "{high:?}");
    }

    #[test]
    fn a_refusal_ends_a_point_even_after_samples() {
        let mut samples = Samples::default();
        samples.add(Ok(vec![taken([1.0; 10])]));
        let short = NotMeasured::Refused("the pool is short".to_owned());
        samples.add(Err(short.clone()));
        assert!(samples.is_closed());
        assert_eq!(samples.refused, Some(short));
    }
}
