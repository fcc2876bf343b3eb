//! Counts and moments as a reader wants them, estimates as a spreadsheet does.

use model::Estimate;
use model::latency::Bound;

/// What `?` behind a time says, as a note of its table.
pub const NOT_CONVERGED: &str = "?: not converged: the time lies on that side of this limit, which is no 95 % interval; give more time with --budget";

/// A count with its noun, whose plural takes an `s`: `1 place`, `2 places`.
pub fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// An RFC 3339 moment in UTC without parts of a second.
pub fn moment(time: &str) -> String {
    time.split_once('.')
        .map_or_else(|| time.to_owned(), |(whole, _)| format!("{whole}Z"))
}

/// Median, low and high as they are, each empty where nothing was measured.
pub fn bounds(estimate: Option<Estimate>) -> [String; 3] {
    estimate.map_or_else(Default::default, |estimate| {
        [estimate.median, estimate.low, estimate.high].map(|value| value.to_string())
    })
}

/// `180 to 335 ?`: a bound is no interval, and is not to be taken for one.
pub fn limits(bound: Bound, time: fn(f64) -> String) -> String {
    match (bound.low.map(time), bound.high.map(time)) {
        (Some(low), Some(high)) => format!("{low} to {high} ?"),
        (None, Some(high)) => format!("at most {high} ?"),
        (Some(low), None) => format!("at least {low} ?"),
        (None, None) => "not converged".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, moment};

    #[test]
    fn one_has_no_s_and_seconds_are_whole() {
        assert_eq!(
            [counted(0, "place"), counted(1, "place"), counted(2, "place")],
            ["0 places", "1 place", "2 places"]
        );
        assert_eq!(moment("2026-01-02T03:04:05.678Z"), "2026-01-02T03:04:05Z");
        assert_eq!(moment("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z");
    }
}
