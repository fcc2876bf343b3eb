//! Samples of one point, visit by visit: the estimate, and whether the state that it depends on had come to rest. Pure.

use model::Estimate;
use model::latency::Bound;

/// Where the second halves differ from the first by more than this for sure, the state was still coming back.
const MOVING: f64 = 0.02;

/// The samples of all visits to a point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visits {
    pub(crate) samples: Vec<f64>,
    /// Medians of the visits, and of the first and the second half of each.
    pub(crate) medians: Vec<f64>,
    early: Vec<f64>,
    late: Vec<f64>,
}

impl Visits {
    /// Takes in a visit, in two halves.
    pub(crate) fn add(&mut self, early: &[f64], late: &[f64]) {
        if let (Some(first), Some(second)) = (stats::median(early), stats::median(late)) {
            self.early.push(first);
            self.late.push(second);
        }
        let begin = self.samples.len();
        self.samples.extend(early.iter().chain(late));
        self.medians.extend(stats::median(&self.samples[begin..]));
    }

    /// Takes in the visits to the same point elsewhere.
    pub(crate) fn join(&mut self, other: &Self) {
        self.samples.extend(&other.samples);
        self.medians.extend(&other.medians);
        self.early.extend(&other.early);
        self.late.extend(&other.late);
    }

    /// The median of visits with its interval; `None` of fewer than two, which have none.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let samples = self.samples.len() as u64;
        stats::of_medians(&self.medians).map(|estimate| Estimate { samples, ..estimate })
    }

    /// How far two visits lie apart, as a share of the median; `None` of fewer than two.
    pub(crate) fn disagreement(&self) -> Option<f64> {
        stats::disagreement(&self.medians)
    }

    /// What the second halves show, if the point was still changing: it has no number, only this limit. A time that falls is no more
    /// than that, one that rises no less. `candidates` is the number of points that are asked about together.
    pub(crate) fn moving(&self, candidates: usize) -> Option<Bound> {
        moving(&self.early, &self.late, candidates)
    }
}

impl FromIterator<Vec<f64>> for Visits {
    fn from_iter<I: IntoIterator<Item = Vec<f64>>>(visits: I) -> Self {
        let mut all = Self::default();
        for visit in visits {
            let (early, late) = visit.split_at(visit.len() / 2);
            all.add(early, late);
        }
        all
    }
}

/// A bound in another unit, of which so many of its own make one.
pub(crate) fn bound_in(bound: Bound, per_unit: f64) -> Bound {
    Bound {
        low: bound.low.map(|low| low / per_unit),
        high: bound.high.map(|high| high / per_unit),
    }
}

/// `None` if both halves may take equally long; `early` and `late` are their medians, visit by visit.
fn moving(early: &[f64], late: &[f64], candidates: usize) -> Option<Bound> {
    let ratio = stats::ratio(late, early, candidates)?;
    let end = stats::of_medians(late)?;
    let falls = ratio.high < 1.0 - MOVING;
    let rises = ratio.low > 1.0 + MOVING;
    (falls || rises).then_some(Bound {
        low: rises.then_some(end.low),
        high: falls.then_some(end.high),
    })
}

#[cfg(test)]
mod tests {
    use super::{bound_in, moving};

    const EARLY: [f64; 6] = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0];

    fn late(factor: f64) -> Vec<f64> {
        EARLY.iter().rev().map(|early| early * factor).collect()
    }

    #[test]
    fn what_falls_has_an_upper_limit_what_rises_a_lower_one_and_what_scatters_none() {
        let falls = moving(&EARLY, &late(0.8), 4).expect("falling");
        assert!(
            falls.low.is_none() && falls.high.is_some_and(|high| (79.0..=82.0).contains(&high)),
            "{falls:?}"
        );
        let rises = moving(&EARLY, &late(1.2), 4).expect("rising");
        let low = bound_in(rises, 2.0).low;
        assert!(rises.high.is_none() && low.is_some_and(|low| (58.0..=60.0).contains(&low)));
        assert!(moving(&EARLY, &late(1.01), 4).is_none());
        assert!(
            moving(&EARLY[..1], &late(0.5)[..1], 1).is_none(),
            "one visit tells nothing"
        );
    }
}
