//! Confidence intervals of a median: exact binomial ranks, or Student's t where ranks cannot reach the confidence.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::quantiles::sorted;

/// The confidence of every published interval.
pub const CONFIDENCE: f64 = 0.95;

/// The ranks, counted from 0, of the order statistics that enclose the median of `n` independent values with at least this
/// confidence. Exact for any continuous distribution (the number of values below the median is binomial); with ties the
/// confidence is higher. `None` where even the smallest and the largest value do not reach it: below 6 values for 95 %.
pub fn ranks(n: usize, confidence: f64) -> Option<(usize, usize)> {
    let below = Binomial::new(0.5, n as u64).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    // The probability that the median lies below the value of rank `low`.
    let misses = |low: usize| below.cdf(low as u64) > tail;
    if n == 0 || misses(0) {
        return None;
    }
    let (mut holds, mut beyond) = (0, n / 2 + 1);
    while beyond - holds > 1 {
        let middle = usize::midpoint(holds, beyond);
        if misses(middle) {
            beyond = middle;
        } else {
            holds = middle;
        }
    }
    Some((holds, n - 1 - holds))
}

/// The interval of the median of independent values: by [`ranks`] where there are enough values for that, else by
/// [`student`], over logarithms where all values are above zero. `None` of fewer than two values: one value shows nothing of
/// how far the next would lie.
pub(crate) fn interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    if let Some((low, high)) = ranks(sorted.len(), confidence) {
        return Some((sorted[low], sorted[high]));
    }
    if sorted.iter().any(|value| *value <= 0.0) {
        return student(&sorted, confidence);
    }
    let logs: Vec<f64> = sorted.iter().map(|value| value.ln()).collect();
    let (low, high) = student(&logs, confidence)?;
    Some((low.exp(), high.exp()))
}

/// Student's interval of the center. It assumes a normal distribution, around one center, of the values handed in; a tail on
/// one side makes it too wide rather than too narrow unless the few values all miss the tail. `None` of fewer than two values.
fn student(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom;
    let half = students_t(freedom, confidence)? * (variance / n).sqrt();
    Some((mean - half, mean + half))
}

/// How many standard errors an interval of that confidence reaches to each side.
pub(crate) fn students_t(freedom: f64, confidence: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(f64::midpoint(1.0, confidence)))
}
