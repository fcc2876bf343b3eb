//! Ratios of two things that were measured in the same rounds, with an interval of their own.
//!
//! The ends of two intervals make no interval of a ratio: they forget that both sides were measured under the same
//! conditions, and each covers its own side only. Here the unit is the round: the ratio of its two visits.

use model::Estimate;

use crate::interval::CONFIDENCE;
use crate::visits;

/// Visits over visits, round by round: `over[i]` and `under[i]` are medians of the visits of round `i`. The estimate is the
/// median of the rounds' ratios, `samples` counts the rounds that both have; later rounds of one alone are left out. What
/// both sides of a round share (clock, contention, drift) cancels. Sides that were not measured in the same rounds may be
/// handed in too, in order of time: nothing cancels then, and the interval is as much wider as it must be.
///
/// `candidates` is the number of ratios among which the one to be reported is chosen: all of their intervals hold together
/// in 95 % (Bonferroni), so each of them holds however the choice was made. 1 where nothing is chosen.
///
/// `None` of fewer than two rounds, and where a median is not above zero.
pub fn ratio(over: &[f64], under: &[f64], candidates: usize) -> Option<Estimate> {
    let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
    let positive = ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0);
    positive.then(|| visits::at(&ratios, confidence(candidates)))?
}

/// The confidence that each of so many intervals needs so that all hold together in 95 %.
pub fn confidence(candidates: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / candidates.max(1) as f64
}
