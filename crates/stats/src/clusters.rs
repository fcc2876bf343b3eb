//! The median of values that come in clusters: rounds that share their memory, or a burst of contention.
//!
//! The interval holds every center that a sign test does not reject whose unit is the cluster: how many of its values lie below the
//! center, beyond half of them, is one number for each cluster, and Student's t asks whether their mean is none. So whatever the
//! values of a cluster share counts once; no distribution of values is assumed; and a cluster that lies far off moves the interval no
//! further than one that lies near.

use crate::interval::students_t;
use crate::quantiles::{median, sorted};

/// Correlation of neighbouring clusters up to which the interval is widened.
const MOST_ALIKE: f64 = 0.8;
/// Taking the mean from the same few values hides this much of it, times one over their number.
const HIDDEN: f64 = 2.0;

/// The median of all values, with the ends of its interval of that confidence; clusters in order of time. `None` of clusters that
/// are too few or too small for any center to be rejected.
pub fn of_clusters<C: AsRef<[f64]>>(clusters: &[C], confidence: f64) -> Option<(f64, f64, f64)> {
    let clusters: Vec<&[f64]> = clusters
        .iter()
        .map(AsRef::as_ref)
        .filter(|all| !all.is_empty())
        .collect();
    let all = sorted(&clusters.concat());
    let freedom = clusters.len().checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let t = students_t(freedom, confidence)?;
    let is_rejected = |center: f64| is_rejected(&clusters, center, t);
    if !is_rejected(f64::NEG_INFINITY) {
        return None;
    }
    let middle = median(&all)?;
    let (below, above) = all.split_at(all.partition_point(|value| *value < middle));
    let low = below.iter().rev().find(|value| is_rejected(**value)).or(all.first())?;
    let high = above.iter().find(|value| is_rejected(**value)).or(all.last())?;
    Some((middle, *low, *high))
}

fn is_rejected(clusters: &[&[f64]], center: f64, t: f64) -> bool {
    let n = clusters.len() as f64;
    let sign = |value: &f64| match value.partial_cmp(&center) {
        Some(std::cmp::Ordering::Less) => 0.5,
        Some(std::cmp::Ordering::Greater) => -0.5,
        _ => 0.0,
    };
    let sums: Vec<f64> = clusters.iter().map(|all| all.iter().map(sign).sum()).collect();
    let mean = sums.iter().sum::<f64>() / n;
    let squares: f64 = sums.iter().map(|sum| (sum - mean).powi(2)).sum();
    let alike = alike(&sums, mean, squares);
    // The numbers of a few clusters may be alike by chance; independent signs have a variance of a quarter each.
    let size = clusters.iter().map(|all| all.len()).sum::<usize>() as f64 / n;
    let deviation = (squares / (n - 1.0)).sqrt().max(size.sqrt() / 2.0);
    mean.abs() > t * deviation * ((1.0 + alike) / (1.0 - alike) / n).sqrt()
}

/// Correlation of neighbours, made up for what taking the mean from the same values hides of it.
fn alike(values: &[f64], mean: f64, squares: f64) -> f64 {
    if squares <= 0.0 {
        return 0.0;
    }
    let pairs = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    (pairs.sum::<f64>() / squares + HIDDEN / values.len() as f64).clamp(0.0, MOST_ALIKE)
}

#[cfg(test)]
mod tests {
    use super::of_clusters;
    use crate::simulated::{Draws, coverage};

    #[test]
    fn one_cluster_has_no_interval_and_values_far_off_do_not_widen_one() {
        assert!(of_clusters(&[[1.0, 2.0, 3.0, 4.0]], 0.95).is_none());
        let cluster = |shift: f64| [1.0, 2.0, 3.0, 4.0].map(|value| value + shift);
        let even: Vec<_> = [0.0, 0.1, -0.1, 0.2, -0.2, 0.3, 0.05, -0.05].map(cluster).to_vec();
        let (middle, low, high) = of_clusters(&even, 0.95).expect("eight");
        assert!(
            (2.0..=3.2).contains(&middle) && low < middle && middle < high,
            "{low} {middle} {high}"
        );
        let mut off = even.clone();
        off[3] = cluster(1000.0);
        let (_, _, further) = of_clusters(&off, 0.95).expect("eight");
        assert!(further < 6.0, "{further}");
    }

    #[test]
    fn it_holds_the_median_whatever_clusters_share() {
        let mut draws = Draws::new(5);
        for (count, size) in [(6, 4), (8, 3), (10, 4)] {
            for shared in [0.0, 0.5, 2.0] {
                let held = coverage(1500, || {
                    let cluster = |_| {
                        let own = shared * draws.normal();
                        (0..size).map(|_| own + draws.normal()).collect::<Vec<f64>>()
                    };
                    let clusters: Vec<_> = (0..count).map(cluster).collect();
                    of_clusters(&clusters, 0.95).is_some_and(|(_, low, high)| low <= 0.0 && 0.0 <= high)
                });
                assert!(held >= 94.0, "{count} of {size}, {shared}: {held} %");
            }
        }
    }
}
