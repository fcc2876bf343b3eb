//! What was fitted says so, and signs are those that are published.

use super::{Preset, other_work, preset};

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
fn signs_are_those_that_are_published() {
    let rows = preset(Preset::NehalemEpt, 100_000, 1, &|_, _| {})
        .expect("possible")
        .published;
    let value = |what: &str| {
        rows.iter()
            .find(|row| row.what.contains(what))
            .expect("a row")
            .simulated
    };
    assert!(value("process churn alone").low > 48.0, "{rows:?}");
    assert!(value("TLB-bound loads on base pages").high < 0.0, "{rows:?}");
    // Interrupts of other virtual CPUs cost the same under both.
    let [two, eight] = ["2 vCPUs", "8 vCPUs"].map(|vcpus| value(vcpus).middle);
    assert!(
        eight > 0.0 && eight < two && two < value("process churn alone").middle,
        "{rows:?}"
    );
    let rows = preset(Preset::VcfSpr, 100_000, 1, &|_, _| {})
        .expect("possible")
        .published;
    assert!(
        rows[0].simulated.low > 0.0 && rows[1].simulated.middle > 97.0,
        "{rows:?}"
    );
}
