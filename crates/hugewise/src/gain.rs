//! What a larger page kind saves against base pages, point by point.

use model::latency::{Access, Latency, Pattern, Point};
use model::{Bytes, Estimate, PageKind};

/// The share of a step's time that a page kind saves against base pages at one working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The larger page kind.
    pub kind: PageKind,
    /// Working set.
    pub bytes: Bytes,
    /// Order of visits.
    pub pattern: Pattern,
    /// Loads, or loads and stores.
    pub access: Access,
    /// ns of a step on base pages.
    pub base: Estimate,
    /// ns of a step on the larger kind.
    pub large: Estimate,
}

impl Gain {
    /// Time saved, in percent of the time on base pages; negative when larger pages are slower.
    pub fn percent(&self) -> f64 {
        saved(self.base.median, self.large.median)
    }

    /// The same at the unkind and at the kind end of both 95 % intervals.
    pub fn interval(&self) -> (f64, f64) {
        (
            saved(self.base.low, self.large.high),
            saved(self.base.high, self.large.low),
        )
    }

    /// Does it save time, with both intervals apart?
    pub fn is_shown(&self) -> bool {
        self.interval().0 > 0.0
    }
}

fn saved(base: f64, large: f64) -> f64 {
    if base > 0.0 { (1.0 - large / base) * 100.0 } else { 0.0 }
}

/// All gains of a measurement: one for every larger kind and working set that has base pages to compare with.
pub fn gains(latency: &Latency) -> Vec<Gain> {
    let large = latency.points.iter().filter(|point| point.kind.is_large());
    large.filter_map(|point| gain(latency, point)).collect()
}

fn gain(latency: &Latency, point: &Point) -> Option<Gain> {
    let same = |other: &&Point| {
        other.kind == PageKind::Base
            && (other.bytes, other.pattern, other.access) == (point.bytes, point.pattern, point.access)
    };
    Some(Gain {
        kind: point.kind,
        bytes: point.bytes,
        pattern: point.pattern,
        access: point.access,
        base: latency.points.iter().find(same)?.ns?,
        large: point.ns?,
    })
}

#[cfg(test)]
mod tests {
    use super::gains;
    use crate::samples::{curve, unmeasured};
    use model::{Bytes, PageKind};

    #[test]
    fn a_gain_is_a_share_of_the_base_time_and_shown_only_when_intervals_are_apart() {
        let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
        latency.points.extend(
            curve(PageKind::Thp, |bytes| {
                (if bytes < Bytes::mib(8) { 199.0 } else { 100.0 }, 0.01)
            })
            .points,
        );
        latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
        let gains = gains(&latency);
        assert_eq!(
            gains.len(),
            latency
                .points
                .iter()
                .filter(|point| point.kind == PageKind::Thp)
                .count()
        );
        let last = gains.last().expect("gains");
        assert!((last.percent() - 50.0).abs() < 1e-9 && last.is_shown());
        assert!(gains[0].percent() > 0.0 && !gains[0].is_shown());
    }
}
