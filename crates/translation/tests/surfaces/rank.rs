//! Spearman's rank correlation, with the mean rank for values that are alike.

/// From -1 to 1; 0 where one side does not vary.
pub(super) fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let mean = |ranks: &[f64]| ranks.iter().sum::<f64>() / ranks.len() as f64;
    let (middle, beside) = (mean(&one), mean(&other));
    let product = |one: &[f64], middle: f64, other: &[f64], beside: f64| -> f64 {
        let pairs = one.iter().zip(other);
        pairs.map(|(one, other)| (one - middle) * (other - beside)).sum()
    };
    let spread = (product(&one, middle, &one, middle) * product(&other, beside, &other, beside)).sqrt();
    if spread > 0.0 {
        product(&one, middle, &other, beside) / spread
    } else {
        0.0
    }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    for alike in order.chunk_by(|&one, &other| values[one] == values[other]) {
        let before = order.iter().position(|place| place == &alike[0]).unwrap_or(0);
        let rank = before as f64 + (alike.len() - 1) as f64 / 2.0;
        alike.iter().for_each(|&place| ranks[place] = rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn order_counts_and_distance_does_not() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[1.0, 10.0, 1000.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 2.0], &[5.0, 5.0]), 0.0);
        // Ranks 0, 1.5, 1.5, 3 beside 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
        let alike = correlation(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]);
        assert!((alike - 4.5 / (4.5_f64 * 5.0).sqrt()).abs() < 1e-12, "{alike}");
    }
}
