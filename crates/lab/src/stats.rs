//! Medians, quantiles and honest intervals. Pure.

use model::Estimate;
use statrs::distribution::{ContinuousCDF, Normal};

/// The quantile `q` (0 to 1) of sorted values, interpolated; `None` of nothing.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = sorted[at.floor() as usize];
    let above = sorted[at.ceil() as usize];
    Some(below + (above - below) * at.fract())
}

/// The median of values in any order; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median with its 95 % interval from order statistics: no assumption on the distribution but independence.
/// Below six values the interval is the whole range, which then covers less than 95 %. `None` of nothing.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let median = quantile(&sorted, 0.5)?;
    let n = sorted.len();
    // The ranks between which the median lies in 95 % of samples: binomial(n, 1/2), by its normal approximation.
    let z = Normal::standard().inverse_cdf(0.975);
    let half = z * (n as f64).sqrt() / 2.0;
    let low = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
    let high = ((n as f64 / 2.0 + half).ceil() as usize).min(n - 1);
    Some(Estimate {
        median,
        low: sorted[low],
        high: sorted[high],
        samples: n as u64,
    })
}

/// Like [`estimate`], for samples taken one after the other, which disturb each other's neighbours: the interval is that
/// of the medians of batches of `batch` consecutive samples (fewer batches, but nearly independent ones).
pub fn batched(values: &[f64], batch: usize) -> Option<Estimate> {
    let medians: Vec<f64> = values.chunks(batch.max(1)).filter_map(median).collect();
    let interval = estimate(&medians)?;
    let median = median(values)?;
    Some(Estimate {
        median,
        low: interval.low.min(median),
        high: interval.high.max(median),
        samples: values.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::{batched, estimate, median, quantile};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn quantiles_interpolate_and_nothing_has_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.25), Some(1.25));
        assert_eq!(median(&[]), None);
        assert_eq!(estimate(&[]), None);
        assert_eq!(batched(&[], 8), None);
    }

    #[test]
    fn the_interval_holds_the_true_median_in_at_least_19_of_20_cases() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut held = 0;
        for _ in 0..1000 {
            // Skewed, as latencies are; the median of 1 + x^4 with x uniform is 1 + 1/16.
            let values: Vec<f64> = (0..60).map(|_| 1.0 + rng.random::<f64>().powi(4)).collect();
            let estimate = estimate(&values).expect("values");
            held += u32::from(estimate.low <= 1.0625 && 1.0625 <= estimate.high);
        }
        assert!(held >= 950, "{held}");
    }

    #[test]
    fn batches_do_not_shrink_the_interval_of_drifting_samples() {
        let drifting: Vec<f64> = (0..800).map(|n| f64::from(n / 100)).collect();
        let naive = estimate(&drifting).expect("values");
        let honest = batched(&drifting, 100).expect("values");
        assert!(honest.high - honest.low > naive.high - naive.low);
    }
}
