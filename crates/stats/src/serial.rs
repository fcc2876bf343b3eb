//! The mean of values that were taken one after the other, where neighbours may be alike.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Correlation of neighbours up to which the interval is widened; values that are more alike than that are too few to say how much.
const MOST_ALIKE: f64 = 0.6;

/// The mean with the ends of its interval of that confidence, of values in order of time. Student's interval, widened by what
/// the correlation of neighbours adds to the variance of a mean: drift and bursts that last longer than one value show in it.
/// `None` of fewer than two values.
pub fn mean_in_time(values: &[f64], confidence: f64) -> Option<(f64, f64, f64)> {
    let n = values.len() as f64;
    let freedom = n - 1.0;
    if freedom < 1.0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let alike = alike(values, mean, squares);
    let variance = squares / freedom / n * (1.0 + alike) / (1.0 - alike);
    let t = StudentsT::new(0.0, 1.0, freedom)
        .ok()?
        .inverse_cdf(f64::midpoint(1.0, confidence));
    let half = t * variance.sqrt();
    Some((mean, mean - half, mean + half))
}

/// Correlation of neighbours, made up for what taking the mean from the same values hides of it.
fn alike(values: &[f64], mean: f64, squares: f64) -> f64 {
    if squares <= 0.0 {
        return 0.0;
    }
    let pairs = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    (pairs.sum::<f64>() / squares + 1.0 / values.len() as f64).clamp(0.0, MOST_ALIKE)
}

#[cfg(test)]
mod tests {
    use super::mean_in_time;
    use crate::simulated::{Draws, coverage};

    #[test]
    fn of_unrelated_values_it_is_students_interval_and_of_related_ones_wider() {
        let (mean, low, high) = mean_in_time(&[1.0, -1.0, 1.0, -1.0], 0.95).expect("four");
        // 3.182 standard errors of 1.1547 / 2.
        assert!(mean.abs() < 1e-12 && (high - 1.837).abs() < 1e-3 && (low + high).abs() < 1e-12);
        let (_, _, steps) = mean_in_time(&[-1.0, -1.0, 1.0, 1.0], 0.95).expect("four");
        assert!(steps > 1.5 * high, "{steps}");
        assert!(mean_in_time(&[1.0], 0.95).is_none());
    }

    #[test]
    fn it_holds_the_center_where_neighbours_are_alike() {
        let mut draws = Draws::new(5);
        for (alike, least) in [(0.0, 95.0), (0.3, 92.0), (0.5, 89.0)] {
            let held = coverage(2000, || {
                let mut at = draws.normal() / (1.0_f64 - alike * alike).sqrt();
                let walk = |_| {
                    at = alike * at + draws.normal();
                    at
                };
                let values: Vec<f64> = (0..10).map(walk).collect();
                mean_in_time(&values, 0.95).is_some_and(|(_, low, high)| low <= 0.0 && 0.0 <= high)
            });
            assert!(held >= least, "{alike}: {held} %");
        }
    }
}
