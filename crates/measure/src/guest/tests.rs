//! The whole measurement on this machine's KVM, small, and its pure parts on made numbers.
#![allow(clippy::print_stderr)]

use std::cell::Cell as Count;
use std::time::Duration;

use host::snapshot::Mmu;
use model::guest::GuestPage;
use model::latency::{Access, Pattern};
use model::{Bytes, PageKind, Reading};

use super::{Error, Spec, run};

fn spec() -> Spec {
    Spec {
        guest_pages: vec![GuestPage::Size4K, GuestPage::Size2M],
        kinds: vec![PageKind::Base, PageKind::Thp],
        sizes: vec![Bytes::mib(4), Bytes::mib(16)],
        pattern: Pattern::RandomLine,
        access: Access::Read,
        budget: Some(Duration::from_millis(500)),
        seed: 1,
        cpu: None,
        node: None,
        available: Bytes::gib(1),
        mmu: Reading::Known(Mmu::ShadowPvm),
    }
}

fn has_kvm() -> bool {
    vm::Hypervisor::open()
        .map_err(|why| testing::skipped(&why.to_string()))
        .is_ok()
}

#[test]
fn the_matrix_has_every_combination_and_the_counters_agree() {
    if !has_kvm() {
        return;
    }
    let (guest, _) = run(&spec(), &mut (), &|| false).expect("measures");
    // Two sizes: two guest page sizes and the native walk on each of two kinds.
    assert_eq!(guest.points.len(), 2 * 3 * 2);
    let emulated = guest.sanity.is_some_and(|sanity| sanity.emulated);
    for point in &guest.points {
        // A side that did not come to rest, as on a busy machine, has a bound and no ratio.
        let measured = point.point.ns.is_some() || point.point.bound.is_some();
        assert_eq!(measured, point.point.not_measured.is_none(), "{point:?}");
        assert!(point.ratio.is_none() || point.point.ns.is_some() && point.guest_page.is_some());
        if emulated && point.guest_page.is_some() {
            assert!(!measured, "no latency of an emulated guest: {point:?}");
            continue;
        }
        assert!(
            measured || point.point.kind == PageKind::Thp,
            "base pages can always be had: {point:?}"
        );
    }
    let touch = guest
        .fault_ns
        .iter()
        .find(|touch| (touch.guest_page, touch.kind) == (GuestPage::Size4K, PageKind::Base))
        .expect("measured");
    let faults = touch.faults.expect("counted");
    assert_eq!(touch.touched, 16 << 8);
    assert!((touch.touched..touch.touched + 100).contains(&faults), "{faults}");
    assert!(guest.kvm_stats["exits"] > 0 && guest.sanity.is_some());
    assert_eq!((guest.exits.len(), guest.churn.len()), (2, 5));
    assert!(
        guest.readings[0].starts_with("shadow-pvm: once warm"),
        "{:?}",
        guest.readings
    );
}

#[test]
fn a_pool_that_is_short_gives_a_reason_and_no_number() {
    if !has_kvm() {
        return;
    }
    // No kernel has a pool of 8 MiB pages on x86-64.
    let spec = Spec {
        kinds: vec![PageKind::Hugetlb(Bytes::mib(8))],
        ..spec()
    };
    let (guest, _) = run(&spec, &mut (), &|| false).expect("measures what it can");
    assert_eq!(guest.points.len(), 3 * 2);
    for point in &guest.points {
        assert!(
            point.point.ns.is_none() && point.point.not_measured.is_some(),
            "{point:?}"
        );
    }
    assert!(guest.fault_ns.is_empty() && guest.sanity.is_none());
}

#[test]
fn a_stop_is_heeded_between_turns() {
    if !has_kvm() {
        return;
    }
    let asked = Count::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 4
    };
    assert!(matches!(run(&spec(), &mut (), &stop), Err(Error::Interrupted)));
    assert_eq!(asked.get(), 5);
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    let refused = |spec: Spec| match run(&spec, &mut (), &|| false) {
        Err(Error::Spec(why)) => why,
        other => panic!("{other:?}"),
    };
    let none = Spec {
        sizes: vec![],
        ..spec()
    };
    assert!(refused(none).contains("at least one working set"));
    let many = Spec {
        sizes: (1..=8).map(Bytes::mib).collect(),
        ..spec()
    };
    assert!(refused(many).contains("7 is the most"));
    let large = Spec {
        sizes: vec![Bytes::gib(1)],
        ..spec()
    };
    assert!(refused(large).contains("819"));
    let small = Spec {
        sizes: vec![Bytes::kib(8)],
        ..spec()
    };
    assert!(refused(small).contains("16K is the least"));
}
