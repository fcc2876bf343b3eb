//! What a larger page kind saves against base pages, point by point.

use std::collections::BTreeSet;

use model::latency::{Access, Latency, Pattern, Point};
use model::{Bytes, Estimate, PageKind};

/// The share of a step's time that a page kind saves against base pages at one working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain<'a> {
    pub kind: PageKind,
    pub bytes: Bytes,
    pub pattern: Pattern,
    pub access: Access,
    /// ns of a step on base pages.
    pub base: Estimate,
    /// ns of a step on the larger kind.
    pub large: Estimate,
    base_visits: &'a [f64],
    large_visits: &'a [f64],
}

/// A kind's way through all working sets.
pub type Curve = (PageKind, Pattern, Access);

impl Gain<'_> {
    /// Time saved, in percent of the time on base pages; negative when larger pages are slower. Round by round where the
    /// result holds the visits, else of both medians.
    pub fn percent(&self) -> f64 {
        let ratio = self.large.median / self.base.median;
        saved(stats::ratio(self.large_visits, self.base_visits, 1).map_or(ratio, |ratio| ratio.median))
    }

    /// Its 95 % interval, by the ratio of both visits in each round: never the ends of two other intervals. `candidates` is the
    /// number of curves among which one is chosen by what was measured; all of their intervals hold together. `None` where
    /// the result does not hold two rounds of visits to both points (saved by a version before there were any).
    pub fn interval(&self, candidates: usize) -> Option<(f64, f64)> {
        let ratio = stats::ratio(self.large_visits, self.base_visits, candidates)?;
        Some((saved(ratio.high), saved(ratio.low)))
    }

    /// Does it save time, with its whole interval?
    pub fn is_shown(&self, candidates: usize) -> bool {
        self.interval(candidates).is_some_and(|(low, _)| low > 0.0)
    }

    /// How much more time this kind takes than another does at the same point, in percent, as the ends of a 95 % interval;
    /// `None` without visits.
    pub fn against(&self, other: &Self, candidates: usize) -> Option<(f64, f64)> {
        let ratio = stats::ratio(self.large_visits, other.large_visits, candidates)?;
        Some((-saved(ratio.low), -saved(ratio.high)))
    }

    /// The curve that it is a point of.
    pub fn curve(&self) -> Curve {
        (self.kind, self.pattern, self.access)
    }
}

fn saved(ratio: f64) -> f64 {
    (1.0 - ratio) * 100.0
}

/// All gains of a measurement: one for every larger kind and working set that has base pages to compare with.
pub fn gains(latency: &Latency) -> Vec<Gain<'_>> {
    let large = latency.points.iter().filter(|point| point.kind.is_large());
    large.filter_map(|point| gain(latency, point)).collect()
}

/// The number of curves among them.
pub fn curves(gains: &[Gain<'_>]) -> usize {
    gains.iter().map(Gain::curve).collect::<BTreeSet<_>>().len()
}

fn gain<'a>(latency: &'a Latency, point: &'a Point) -> Option<Gain<'a>> {
    let same = |other: &&Point| {
        other.kind == PageKind::Base
            && (other.bytes, other.pattern, other.access) == (point.bytes, point.pattern, point.access)
    };
    let base = latency.points.iter().find(same)?;
    Some(Gain {
        kind: point.kind,
        bytes: point.bytes,
        pattern: point.pattern,
        access: point.access,
        base: base.ns?,
        large: point.ns?,
        base_visits: &base.visits,
        large_visits: &point.visits,
    })
}

#[cfg(test)]
mod tests {
    use super::{curves, gains};
    use crate::samples::{curve, unmeasured};
    use model::{Bytes, PageKind};

    #[test]
    fn a_gain_is_a_share_of_the_base_time_and_shown_only_when_its_own_interval_is_above_zero() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(
            curve(PageKind::Thp, |bytes| {
                (if bytes < Bytes::mib(8) { 199.0 } else { 100.0 }, 0.01)
            })
            .points,
        );
        latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
        let gains = gains(&latency);
        let measured = latency.points.iter().filter(|point| point.kind == PageKind::Thp);
        assert_eq!((gains.len(), curves(&gains)), (measured.count(), 1));
        let last = gains.last().expect("gains");
        assert!((last.percent() - 50.0).abs() < 0.01 && last.is_shown(1));
        assert!(gains[0].percent() > 0.0 && !gains[0].is_shown(1));
    }

    #[test]
    fn what_a_round_does_to_both_kinds_does_not_widen_the_interval_of_a_gain() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(curve(PageKind::Thp, |_| (150.0, 0.01)).points);
        for point in &mut latency.points {
            let scale = if point.kind == PageKind::Base { 200.0 } else { 150.0 };
            point.visits = [1.0, 1.4, 0.8, 1.2, 0.9, 1.1].map(|round| round * scale).to_vec();
        }
        let gain = gains(&latency)[0];
        let (low, high) = gain.interval(1).expect("visits");
        assert!((low - 25.0).abs() < 1e-6 && (high - 25.0).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn more_curves_to_choose_from_widen_every_interval() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(curve(PageKind::Thp, |_| (150.0, 0.01)).points);
        let gain = gains(&latency)[0];
        let (one, four) = (gain.interval(1).expect("visits"), gain.interval(4).expect("visits"));
        assert!(four.0 < one.0 && four.1 > one.1, "{one:?} {four:?}");
    }

    #[test]
    fn a_result_without_visits_has_a_gain_and_no_interval() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(curve(PageKind::Thp, |_| (100.0, 0.01)).points);
        latency.points.iter_mut().for_each(|point| point.visits.clear());
        let gain = gains(&latency)[0];
        assert_eq!((gain.percent(), gain.interval(1)), (50.0, None));
        assert!(!gain.is_shown(1));
    }
}
