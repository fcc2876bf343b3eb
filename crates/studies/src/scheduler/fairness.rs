//! What each virtual machine is entitled to by its shares, and how far it is from that.

/// CPUs for each: by shares, no machine more than it can use, all of the rest to the others.
pub(super) fn entitled(capacity: f64, wants: &[(u64, f64)]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let fills_at = |place: &usize| wants[*place].1 / wants[*place].0.max(1) as f64;
    order.sort_by(|one, other| fills_at(one).total_cmp(&fills_at(other)));
    let mut shares: f64 = wants.iter().map(|(shares, _)| (*shares).max(1) as f64).sum();
    let (mut left, mut entitled) = (capacity.max(0.0), vec![0.0; wants.len()]);
    for place in order {
        let (own, most) = ((wants[place].0).max(1) as f64, wants[place].1);
        let part = (left * own / shares).min(most);
        entitled[place] = part;
        (left, shares) = (left - part, shares - own);
    }
    entitled
}

/// Jain's index: 1 if all have the same, 1/n if one has all.
pub(super) fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| {
        (sum + value, squares + value * value)
    });
    match squares > 0.0 {
        true => sum * sum / (values.len() as f64 * squares),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{entitled, jain};

    #[test]
    fn who_needs_little_leaves_the_rest_to_the_others_by_shares() {
        let parts = entitled(4.0, &[(1000, 0.5), (1000, 4.0), (2000, 4.0)]);
        let expected = [0.5, 3.5 / 3.0, 7.0 / 3.0];
        assert!(
            parts
                .iter()
                .zip(expected)
                .all(|(part, value)| (part - value).abs() < 1e-12),
            "{parts:?}"
        );
        assert_eq!(entitled(8.0, &[(1000, 2.0), (1000, 2.0)]), [2.0, 2.0]);
    }

    #[test]
    fn jains_index_is_one_for_equals_and_one_in_n_for_one_of_n() {
        assert_eq!((jain(&[2.0; 5]), jain(&[1.0, 0.0, 0.0, 0.0])), (1.0, 0.25));
    }

    proptest! {
        #[test]
        fn entitlements_add_up_to_what_there_is_or_to_what_is_wanted(
            capacity in 0.1_f64..64.0,
            wants in proptest::collection::vec((1_u64..5000, 0.01_f64..8.0), 1..40),
        ) {
            let parts = entitled(capacity, &wants);
            let wanted: f64 = wants.iter().map(|(_, most)| most).sum();
            prop_assert!((parts.iter().sum::<f64>() - capacity.min(wanted)).abs() < 1e-9);
            prop_assert!(parts.iter().zip(&wants).all(|(part, (_, most))| *part <= *most));
        }
    }
}
