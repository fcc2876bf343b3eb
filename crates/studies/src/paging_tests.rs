//! What was fitted says so.

use super::{Preset, locked_share, other_work, preset, waiting};

#[test]
fn other_work_gives_the_gain_that_it_is_fitted_to() {
    let other = other_work(100.0, 60.0, 8.0);
    assert!(((100.0 + other) / (60.0 + other) - 1.08).abs() < 1e-12);
    assert_eq!(other_work(61.0, 60.0, 8.0), 0.0, "nothing to dilute");
}

#[test]
fn every_publication_is_simulated_and_what_was_fitted_says_so() {
    for which in Preset::ALL {
        let result = preset(which, 20_000, 1, &|_, _| {}).expect("possible");
        assert!(!result.published.is_empty(), "{}", which.name());
        for row in &result.published {
            let range = row.simulated;
            assert!(range.low <= range.middle && range.middle <= range.high, "{row:?}");
            if row.is_fitted
                && let (Some(low), Some(high)) = (row.published.first(), row.published.last())
            {
                assert!((low - 0.01..=high + 0.01).contains(&range.middle), "{row:?}");
            }
        }
    }
}

#[test]
fn a_lock_that_all_take_costs_more_the_more_there_are() {
    assert!((waiting(0.25, 1) - 0.25).abs() < 1e-12, "one alone does not wait");
    let times = [1, 2, 4, 8].map(|vcpus| waiting(0.25, vcpus));
    assert!(times.is_sorted() && times[3] < 8.0 * 0.25, "{times:?}");
    assert!((waiting(locked_share(0.48, 4), 4) - 0.48).abs() < 1e-9);
}
