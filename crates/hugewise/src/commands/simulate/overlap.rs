//! The warning that a real CPU overlaps accesses and the simulation does not.

use model::Warning;

/// It, about `which` accesses.
pub(super) fn warning(which: &str) -> Warning {
    let text =
        format!("{which} overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates)");
    Warning::new("no-overlap", text)
}
