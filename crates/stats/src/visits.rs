//! The one estimator of everything that is sampled in visits: the visit is the unit, its samples only make it sharper.
//!
//! A visit is a stretch of samples of one point, taken in one go. Samples of one visit share what the visit found: which
//! pages, which share of a cache, which clock. So they repeat each other, and only other visits show how far that moves.
//!
//! Assumed: visits are alike and independent, taken all over the run, so that what changes during the run is among what they
//! show. An interval speaks of the conditions of its run; of another day it knows nothing. Where neighbouring visits are
//! alike because something drifts, the interval still holds the middle of the run, for the drift is in the visits' spread.

use model::Estimate;

use crate::interval::{CONFIDENCE, interval};
use crate::quantiles::{median, sorted};

/// The medians of visits, in the order of the visits; those without samples have none.
pub fn medians<V: AsRef<[f64]>>(visits: &[V]) -> Vec<f64> {
    visits.iter().filter_map(|visit| median(visit.as_ref())).collect()
}

/// The estimate over visits, each a list of samples: the median of the visits' medians with its 95 % interval; `samples` counts
/// all samples. Every visit weighs the same, however many samples it has. `None` of fewer than two visits with samples, which
/// leave unknown how far visits lie apart.
pub fn of_visits<V: AsRef<[f64]>>(visits: &[V]) -> Option<Estimate> {
    let samples = visits.iter().map(|visit| visit.as_ref().len() as u64).sum();
    of_medians(&medians(visits)).map(|estimate| Estimate { samples, ..estimate })
}

/// [`of_visits`] of their medians alone; `samples` counts the visits.
pub fn of_medians(medians: &[f64]) -> Option<Estimate> {
    at(medians, CONFIDENCE)
}

/// The median with its interval of that confidence; `None` of fewer than two values.
pub(crate) fn at(values: &[f64], confidence: f64) -> Option<Estimate> {
    let (low, high) = interval(values, confidence)?;
    let median = median(values)?;
    Some(Estimate {
        median,
        low: low.min(median),
        high: high.max(median),
        samples: values.len() as u64,
    })
}

/// How far two visits to the same point lie apart on average, as a share of their median: 0.1 is "two visits differ by
/// 10 %". More visits make it surer and not larger, whatever their distribution, as it is a mean over all pairs of them
/// (Gini's mean difference; for normal values 1.13 standard deviations). `None` of fewer than two visits.
pub fn disagreement(medians: &[f64]) -> Option<f64> {
    let middle = median(medians).filter(|middle| *middle != 0.0)?;
    let sorted = sorted(medians);
    let last = sorted.len().checked_sub(1).filter(|&last| last > 0)?;
    // Each value is the larger one of as many pairs as lie below it, and the smaller one of those above.
    let sum: f64 = sorted
        .iter()
        .enumerate()
        .map(|(at, value)| value * (2.0 * at as f64 - last as f64))
        .sum();
    let pairs = (sorted.len() * last) as f64 / 2.0;
    Some(sum / pairs / middle.abs())
}
