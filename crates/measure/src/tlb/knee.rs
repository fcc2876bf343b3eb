//! Where a curve of costs rises for good, by how much, and how gently.

use model::tlb::Entries;

/// A knee in the cost of neighbouring pages, and what lies before and behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    pub(super) before: f64,
    /// What the plateau behind it costs more.
    pub(super) rise: f64,
    /// The first number of pages that clearly costs more.
    pub(super) pages: u32,
}

impl Knee {
    /// A cost as a share of the rise.
    pub(super) fn height(self, cost: f64) -> f64 {
        (cost - self.before) / self.rise
    }
}

/// The last knee of a curve `(pages, cost)`, if costs rise for good at all and stay up for some points.
pub(super) fn knee(curve: &[(u32, f64)], before: f64) -> Option<Knee> {
    // Smaller than any known penalty (3 cycles), larger than what a disturbed pass leaves after taking floors.
    let least = (0.06 * before).max(1.0);
    let after = curve
        .iter()
        .rposition(|&(_, cost)| cost < before + least)
        .map_or(0, |last| last + 1);
    // A single point at the very end is no knee.
    let &(pages, _) = curve.get(after).filter(|_| after + 2 < curve.len())?;
    let behind = |from: u32, to: u32| {
        let costs = curve.iter().filter(|&&(at, _)| at >= from && at <= to);
        lower_quartile(&costs.map(|&(_, cost)| cost).collect::<Vec<f64>>())
    };
    let double = pages.saturating_mul(2);
    let end = behind(pages + pages * 3 / 5, pages.saturating_mul(3)).or_else(|| behind(pages, double))?;
    Some(Knee {
        before,
        rise: (end - before).max(least),
        pages,
    })
}

/// The share of misses that a disturbed clock may make of none.
const FEW: f64 = 0.03;
/// Of so many pages, as a divisor, one page more than there are entries may miss no more often than that: a random entry goes, or
/// one of a tree that leaves out branches, and of 73 pages in 72 entries 2.7 % miss.
const HIDDEN: u32 = 32;

/// The same down to the fewest entries beyond which a gentle replacement may still hide the first misses.
pub(super) fn hidden(entries: Entries) -> Entries {
    Entries {
        low: entries.low - entries.low / HIDDEN - 1,
        ..entries
    }
}

/// The range between where misses begin and a little beyond where they are half of all accesses: whatever replaces entries,
/// hardly any miss before all are in use, and LRU comes to half of all soonest, by a third at the most.
pub(super) fn soft(curve: &[(u32, f64)], knee: Knee) -> Option<Entries> {
    // Where a random entry goes, one page too many in each set of two dozen makes one access in twelve miss.
    let until = |share: f64| {
        let below = |&&(_, cost): &&(u32, f64)| knee.height(cost) < share;
        curve.iter().rev().find(below).map(|&(pages, _)| pages)
    };
    let (low, half) = (until(FEW)?, until(0.5)?);
    let high = half + half / 8;
    Some(hidden(Entries { low, high }))
}

/// A low value that the very lowest ones do not move.
pub(super) fn lower_quartile(costs: &[f64]) -> Option<f64> {
    stats::quantile(&stats::sorted(costs), 0.25)
}

#[cfg(test)]
mod tests {
    use super::{knee, soft};

    #[test]
    fn a_curve_that_stays_flat_or_rises_at_its_very_end_has_no_knee() {
        let flat: Vec<(u32, f64)> = (1..50).map(|pages| (pages, 5.0)).collect();
        assert_eq!(knee(&flat, 5.0), None);
        let last: Vec<(u32, f64)> = flat.iter().copied().chain([(50, 30.0)]).collect();
        assert_eq!(knee(&last, 5.0), None);
    }

    #[test]
    fn a_soft_knee_is_a_range_from_the_first_misses_on() {
        let curve: Vec<(u32, f64)> = (1..400)
            .map(|pages| (pages, 5.0 + (f64::from(pages) - 100.0).clamp(0.0, 100.0) / 10.0))
            .collect();
        let found = knee(&curve, 5.0).expect("a knee");
        assert_eq!((found.pages, found.rise), (110, 10.0));
        let entries = soft(&curve, found).expect("a range");
        assert_eq!((entries.low, entries.high), (103 - 3 - 1, 149 + 149 / 8));
    }
}
