//! What a larger page kind saves against base pages, point by point.

use model::latency::{Access, Latency, Pattern, Point};
use model::{Bytes, Estimate, PageKind};

/// The share of a step's time that a page kind saves against base pages at one working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    pub(crate) kind: PageKind,
    pub(crate) bytes: Bytes,
    pub(crate) pattern: Pattern,
    pub(crate) access: Access,
    /// ns of a step on base pages.
    pub(crate) base: Estimate,
    /// ns of a step on the larger kind.
    pub(crate) large: Estimate,
    /// Of both visits in each round. `None` where the result does not hold two rounds of visits to both points (saved by a version
    /// before there were any).
    ratio: Option<Estimate>,
}

impl Gain {
    /// Time saved, in percent of the time on base pages; negative when larger pages are slower. Round by round where the
    /// result holds the visits, else of both medians.
    pub(crate) fn percent(&self) -> f64 {
        let of_medians = self.large.median / self.base.median;
        saved(self.ratio.map_or(of_medians, |ratio| ratio.median))
    }

    /// Its 95 % interval, by the ratio of both visits in each round: never the ends of two other intervals.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        self.ratio.map(|ratio| (saved(ratio.high), saved(ratio.low)))
    }
}

fn saved(ratio: f64) -> f64 {
    (1.0 - ratio) * 100.0
}

/// All gains of a measurement: one for every larger kind and working set that has base pages to compare with.
pub(crate) fn gains(latency: &Latency) -> Vec<Gain> {
    let large = latency.points.iter().filter(|point| point.kind.is_large());
    large.filter_map(|point| gain(latency, point)).collect()
}

fn gain(latency: &Latency, point: &Point) -> Option<Gain> {
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
        ratio: stats::ratio(&point.visits, &base.visits, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::gains;
    use crate::samples::{curve, unmeasured};
    use model::{Bytes, PageKind};

    #[test]
    fn a_gain_is_a_share_of_the_base_time_and_has_an_interval_of_its_own() {
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
        assert_eq!(gains.len(), measured.count());
        let last = gains.last().expect("gains");
        let is_above_zero = |gain: &super::Gain| gain.interval().is_some_and(|(low, _)| low > 0.0);
        assert!((last.percent() - 50.0).abs() < 0.01 && is_above_zero(last));
        assert!(gains[0].percent() > 0.0 && !is_above_zero(&gains[0]));
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
        let (low, high) = gain.interval().expect("visits");
        assert!((low - 25.0).abs() < 1e-6 && (high - 25.0).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn a_result_without_visits_has_a_gain_and_no_interval() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(curve(PageKind::Thp, |_| (100.0, 0.01)).points);
        latency.points.iter_mut().for_each(|point| point.visits.clear());
        let gain = gains(&latency)[0];
        assert_eq!((gain.percent(), gain.interval()), (50.0, None));
    }
}
