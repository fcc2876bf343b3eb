//! By how much is new better than old? By the means, and by the best pair, as "as much as" may be meant.

use super::{SizeError, Sizing};

/// `size gain`.
///
/// # Errors
/// When there is nothing to compare, or a value is not positive.
pub fn sizing(old: &[f64], new: &[f64]) -> Result<Sizing, SizeError> {
    let mut all = old.iter().chain(new);
    if let Some(value) = all.find(|&&value| !(value > 0.0 && value.is_finite())) {
        return Err(SizeError::out_of_range("--old or --new", value, "numbers above 0"));
    }
    if old.is_empty() || old.len() != new.len() {
        let (count, wanted) = (format!("{} values", new.len()), "as many as --old has, at least one");
        return Err(SizeError::out_of_range("--new", count, wanted));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let gain = |old: f64, new: f64| (new / old - 1.0) * 100.0;
    let (before, after) = (mean(old), mean(new));
    let pairs = old.iter().zip(new).map(|(&old, &new)| gain(old, new));
    let best = pairs.fold(f64::NEG_INFINITY, f64::max);
    let (means, below) = (
        format!("{after:.4} / {before:.4} - 1, of the means"),
        format!("1 - {before:.4} / {after:.4}"),
    );
    let source =
        "IBM System x Performance Laboratory, Scheduler Improvements in VMware ESX Server 2.5.3 and 3.0 (2006)";
    Ok(Sizing::new("throughput gain", source)
        .step("mean_gain", means, gain(before, after), "%")
        .step("best_pair", "the best of the pairs", best, "%")
        .step("drop", below, (1.0 - before / after) * 100.0, "%")
        .trap("a gain of 20 % and a drop of 16.7 % are the same thing: say which one is meant")
        .trap("\"as much as\" is the best pair, not the mean; whether it is beyond noise only `compare` shows"))
}
