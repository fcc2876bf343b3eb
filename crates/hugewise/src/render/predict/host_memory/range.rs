//! Values that are not known exactly, as text.

use translation::study::Range;

use draw::number;

/// A value with its ends, where they differ.
pub(super) fn spread(range: Range, text: impl Fn(f64) -> String) -> String {
    match range.is_exact() {
        true => text(range.middle),
        false => format!("{} ({} to {})", text(range.middle), text(range.low), text(range.high)),
    }
}

pub(super) fn percent(range: Range) -> String {
    spread(range, |value| number(value * 100.0))
}
