//! By how much is new better than old? The two ways in which the ESX large-page paper counts.

use super::{SizeError, Sizing};

/// new / old - 1, in per cent.
pub fn gain_percent(old: f64, new: f64) -> f64 {
    (new / old - 1.0) * 100.0
}

/// By how much `value` is below `reference`, in per cent.
pub fn drop_percent(reference: f64, value: f64) -> f64 {
    (1.0 - value / reference) * 100.0
}

/// The arithmetic mean; of nothing it is not a number.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The largest gain of any pair at the same place of both lists, in per cent.
pub fn best_pair(old: &[f64], new: &[f64]) -> f64 {
    let pairs = old.iter().zip(new).map(|(&old, &new)| gain_percent(old, new));
    pairs.fold(f64::NEG_INFINITY, f64::max)
}

/// `size gain`.
///
/// # Errors
/// When there is nothing to compare, or a value is not positive.
pub fn sizing(old: &[f64], new: &[f64]) -> Result<Sizing, SizeError> {
    let wrong = old
        .iter()
        .chain(new)
        .find(|&&value| !(value > 0.0 && value.is_finite()));
    if let Some(value) = wrong {
        return Err(SizeError::out_of_range("--old or --new", value, "numbers above 0"));
    }
    if old.is_empty() || old.len() != new.len() {
        return Err(SizeError::out_of_range(
            "--new",
            format!("{} values", new.len()),
            "as many as --old has, at least one",
        ));
    }
    let (before, after) = (mean(old), mean(new));
    Ok(Sizing::new(
        "throughput gain",
        "VMware, Large Page Performance: ESX Server 3.5 and ESX Server 3i v3.5",
    )
    .step(
        "mean_gain",
        format!("{after:.4} / {before:.4} - 1, of the means"),
        gain_percent(before, after),
        "%",
    )
    .step("best_pair", "the best of the pairs", best_pair(old, new), "%")
    .step(
        "drop",
        format!("1 - {before:.4} / {after:.4}"),
        drop_percent(after, before),
        "%",
    )
    .trap("a gain of 20 % and a drop of 16.7 % are the same thing: say which one is meant")
    .trap("\"as much as\" is the best pair, not the mean; whether it is beyond noise only `compare` shows"))
}
