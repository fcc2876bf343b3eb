//! Published figures, each reproduced: VMware's study of VCF, the ESX large-page paper, the JBoss post, manuals.

use model::Bytes;

use super::{Quantity, SizeError, Sizing, esx, gain, ksm};

fn close(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{value} for {expected}"
    );
}

/// The value of a step.
fn real(sizing: &Result<Sizing, SizeError>, name: &str) -> f64 {
    match sizing.as_ref().expect("a size").value(name) {
        Some(Quantity::Real(value)) => value,
        other => panic!("{name} is {other:?} in {sizing:?}"),
    }
}

fn max_cores(reserved_mhz: f64) -> Option<u64> {
    esx::cpu(48, 2.99, reserved_mhz).expect("a size").whole("max_cores")
}

#[test]
fn vcf_study_reserved_cores_largest_machine_and_its_reservation() {
    let sizing = esx::cpu(48, 2.99, 10386.0);
    let reserved = real(&sizing, "reserved_cores");
    close(reserved, 3.473_578_595_317_726);
    assert_eq!(
        format!("{:.1}", (reserved * 2.0).ceil() / 2.0),
        "3.5",
        "the study prints 3.5"
    );
    assert_eq!((max_cores(10386.0), max_cores(3.5 * 2990.0)), (Some(44), Some(44)));
    close(real(&sizing, "reservation"), 131_560.0);
    close(real(&sizing, "left"), 1574.0);
}

#[test]
fn rounding_the_reserved_cores_first_changes_the_answer() {
    assert_eq!((max_cores(11960.1), max_cores(4.0 * 2990.0)), (Some(43), Some(44)));
}

#[test]
fn vsphere_8_least_reservation_with_latency_sensitivity_high() {
    close(real(&Ok(esx::latency_sensitive(20, 1, 2.0)), "reservation"), 40.0);
    close(real(&Ok(esx::latency_sensitive(20, 2, 2.0)), "reservation"), 20.0);
}

#[test]
fn vcf_study_reserved_memory_and_the_search_for_what_powers_on() {
    let sizing = esx::memory(2048, 39, 10);
    let share = real(&sizing, "reserved_share");
    close(share, 1.904_296_875);
    assert_eq!(format!("{share:.1}"), "1.9", "the study prints 1.9 %");
    let sizing = sizing.expect("a size");
    assert_eq!(sizing.whole("max"), Some(2009));
    let tries = |sizing: &Sizing| [1, 2, 3, 4].map(|nth| sizing.whole(&format!("try_{nth}")));
    assert_eq!(tries(&sizing), [2008, 1998, 1988, 1978].map(Some));
    let small = esx::memory(12, 0, 10).expect("a size");
    assert_eq!(tries(&small), [Some(11), Some(1), None, None], "never below nothing");
}

#[test]
fn vcf_study_backing_by_1_gb_pages() {
    let good = esx::backing(1900, 1900, 0);
    assert!(good.about.contains(": optimal"), "{good:?}");
    close(real(&Ok(good), "backed"), 1900.0);
    let mixed = esx::backing(1960, 1941, 8605);
    assert!(mixed.about.contains(": suboptimal"), "{mixed:?}");
    let mixed = Ok(mixed);
    close(real(&mixed, "backed"), 1_957.806_640_625);
    close(real(&mixed, "missing"), 2.193_359_375);
    close(real(&mixed, "share_1g"), 99.030_612_244_897_96);
    // buddy-stats of the same study: 2023 free 1 GB pages of 2 TB; 2009 GB can be reserved, so that is the tighter limit.
    close(real(&Ok(esx::backing(2048, 2023, 0)), "missing"), 25.0);
}

#[test]
fn vmwarebits_and_running_system_sliding_min_free() {
    let mib = |memory: Bytes| esx::min_free(memory) / (1u64 << 20) as f64;
    assert!((mib(Bytes::mib(130_607)) - 1920.47).abs() < 0.005, "esxtop shows 1920");
    close(mib(Bytes::gib(28)), 901.12);
    close(mib(Bytes::gib(100)), 1638.4);
}

#[test]
fn waldspurger_idle_memory_tax() {
    for (active, expected) in [(1.0, 4.0), (0.0, 1.0), (0.5, 1.6)] {
        close(esx::shares_per_page(1000.0, 250.0, active, 0.75), expected);
    }
}

#[test]
fn ksm_scan_rate_profit_and_red_hat_s_threshold() {
    close(ksm::scan_rate(100, 20.0), 19.53125);
    close(ksm::scan_rate(1250, 10.0), 488.28125);
    let of = |sharing, items, total| ksm::sizing(100, 20.0, sharing, items, total);
    close(real(&of(262_144, 524_288, Bytes::gib(4)), "profit"), 1_040_187_392.0);
    assert!(real(&of(0, 10, Bytes::gib(4)), "profit") < 0.0);
    let threshold = |total| of(0, 0, total).expect("a size").whole("ksmtuned_threshold");
    assert_eq!(threshold(Bytes::gib(4)), Some(Bytes::mib(2048).0));
    assert!(threshold(Bytes::gib(100)) > Some(Bytes::gib(19).0));
}

#[test]
fn ibm_s_study_throughput() {
    let (old, new) = ([8527.0, 8411.0, 8298.0], [10042.0, 10072.0, 10120.0]);
    let sizing = gain::sizing(&old, &new);
    close(real(&sizing, "mean_gain"), 19.805_040_418_449_84);
    close(real(&sizing, "best_pair"), 21.957_098_095_926_72);
    for (value, expected) in old.into_iter().zip([15.28, 16.43, 17.56]) {
        let drop = real(&gain::sizing(&[value], &[10065.0]), "drop");
        assert!((drop - expected).abs() < 0.005);
    }
}
