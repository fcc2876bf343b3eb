//! Counts, lists, moments and limits as text.

use std::fmt::{Display, Write as _};

pub use model::counted;
use model::latency::Bound;

/// The note that explains `?` behind a time.
pub const NOT_CONVERGED: &str =
    "?: not converged: the time lies on that side of this limit, which is no 95 % CI; give more time with --budget";

/// The value as text; nothing if there is none.
pub fn or_empty(value: Option<impl ToString>) -> String {
    or(value, "")
}

/// The value as text; `otherwise` if there is none.
pub fn or(value: Option<impl ToString>, otherwise: &str) -> String {
    value.map_or_else(|| otherwise.to_owned(), |value| value.to_string())
}

/// All items, with this between them.
pub fn joined(items: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    let mut text = String::new();
    for (number, item) in items.into_iter().enumerate() {
        let between = if number == 0 { "" } else { between };
        // Writing to a String does not fail.
        let _ = write!(text, "{between}{item}");
    }
    text
}

/// An RFC 3339 moment in UTC without parts of a second.
pub fn moment(time: &str) -> String {
    time.split_once('.')
        .map_or_else(|| time.to_owned(), |(whole, _)| format!("{whole}Z"))
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
            [counted(0, "place"), counted(1, "process"), counted(2, "process")],
            ["0 places", "1 process", "2 processes"]
        );
        assert_eq!(moment("2026-01-02T03:04:05.678Z"), "2026-01-02T03:04:05Z");
        assert_eq!(moment("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z");
    }
}
