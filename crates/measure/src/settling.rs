//! Had the state that a time depends on come to rest? Judged by both halves of each visit. Pure.

use model::latency::Bound;

/// Where the second halves differ from the first by more than this for sure, the state was still coming back.
const MOVING: f64 = 0.02;

/// A time that was still changing while it was measured: it has no number, only a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moving {
    /// The second half of a visit as a multiple of the first.
    pub(crate) ratio: f64,
    /// What the second halves show, in the unit of the medians: a time that falls is no more than that, one that rises no less.
    pub(crate) bound: Bound,
}

impl Moving {
    /// In another unit.
    pub(crate) fn bound_in(self, per_unit: f64) -> Bound {
        Bound {
            low: self.bound.low.map(|low| low / per_unit),
            high: self.bound.high.map(|high| high / per_unit),
        }
    }
}

/// `None` if both halves may take equally long. `early` and `late` are the medians of both halves of each visit; `candidates` is the
/// number of times that are asked about together.
pub(crate) fn moving(early: &[f64], late: &[f64], candidates: usize) -> Option<Moving> {
    let ratio = stats::ratio(late, early, candidates)?;
    let end = stats::of_medians(late)?;
    let falls = ratio.high < 1.0 - MOVING;
    let rises = ratio.low > 1.0 + MOVING;
    (falls || rises).then_some(Moving {
        ratio: ratio.median,
        bound: Bound {
            low: rises.then_some(end.low),
            high: falls.then_some(end.high),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::moving;

    const EARLY: [f64; 6] = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0];

    fn late(factor: f64) -> Vec<f64> {
        EARLY.iter().rev().map(|early| early * factor).collect()
    }

    #[test]
    fn what_falls_has_an_upper_limit_what_rises_a_lower_one_and_what_scatters_none() {
        let falls = moving(&EARLY, &late(0.8), 4).expect("falling").bound;
        assert!(
            falls.low.is_none() && falls.high.is_some_and(|high| (79.0..=82.0).contains(&high)),
            "{falls:?}"
        );
        let rises = moving(&EARLY, &late(1.2), 4).expect("rising");
        assert!(rises.bound.high.is_none() && rises.bound_in(2.0).low.is_some_and(|low| (58.0..=60.0).contains(&low)));
        assert!(moving(&EARLY, &late(1.01), 4).is_none());
        assert!(
            moving(&EARLY[..1], &late(0.5)[..1], 1).is_none(),
            "one visit tells nothing"
        );
    }
}
