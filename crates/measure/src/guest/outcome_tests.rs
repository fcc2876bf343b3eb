//! Made samples in, published numbers out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use host::snapshot::Mmu;
use model::guest::{Guest, GuestPage};
use model::latency::{Access, Backed, Pattern};
use model::{Backing, Bytes, PageKind, Reading};

use super::super::cell::{Cell, Counted, Turns};
use super::super::operations::Measured;
use super::super::spec::Spec;
use super::{Outcome, per_fault};

const SIZE: Bytes = Bytes::mib(64);

fn spec() -> Spec {
    Spec {
        guest_pages: vec![GuestPage::Size4K],
        kinds: vec![PageKind::Base],
        sizes: vec![SIZE],
        pattern: Pattern::RandomLine,
        access: Access::Read,
        budget: Some(Duration::from_secs(1)),
        seed: 1,
        cpu: None,
        node: None,
        available: Bytes::gib(1),
        mmu: Reading::Known(Mmu::ShadowPvm),
    }
}

/// Six rounds in which every sample of a side is the same.
fn turns(native: f64, guest: f64) -> Turns {
    Turns {
        native: vec![vec![native; 10]; 6].into_iter().collect(),
        guest: vec![vec![guest; 10]; 6].into_iter().collect(),
    }
}

fn counts(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

/// A cell at 400 ticks natively and 420 in the guest; the sanity ring at 2 ticks natively.
fn outcome(sanity: f64, timed_faults: i64) -> Outcome {
    let backed = Backed {
        asked: PageKind::Base,
        got: Backing::new(),
        proof: String::new(),
    };
    Outcome {
        cells: vec![Cell {
            page: GuestPage::Size4K,
            kind: PageKind::Base,
            sized: vec![(SIZE, backed, Ok(turns(400.0, 420.0)))],
            guest: Some(Counted {
                first: vec![20_000.0; 10],
                second: vec![100.0; 10],
                touched: 160,
                touch_stats: counts(&[("pf_fixed", 160)]),
                warm_stats: BTreeMap::new(),
                timed_stats: counts(&[("pf_fixed", timed_faults)]),
                all_stats: counts(&[("exits", 7)]),
                sanity: turns(2.0, sanity),
            }),
        }],
        operations: vec![
            Measured {
                name: "exit-to-user",
                what: "",
                churn: false,
                result: Ok((vec![vec![50_000.0; 8]; 6].into_iter().collect(), BTreeMap::new())),
            },
            Measured {
                name: "segv",
                what: "",
                churn: true,
                result: Err("the guest faulted".to_owned()),
            },
        ],
    }
}

/// Two ticks are a nanosecond.
fn publish(outcome: &Outcome) -> Guest {
    outcome.publish(&spec(), 2.0, 0, Instant::now())
}

fn ns(guest: &Guest, page: Option<GuestPage>) -> Option<f64> {
    let mut points = guest.points.iter();
    let point = points.find(|point| point.guest_page == page).expect("a point");
    point.point.ns.map(|ns| ns.median)
}

#[test]
fn ticks_become_nanoseconds_and_both_sides_stand_beside_each_other() {
    let outcome = outcome(2.0, 3);
    let guest = publish(&outcome);
    assert_eq!(
        (ns(&guest, None), ns(&guest, Some(GuestPage::Size4K))),
        (Some(200.0), Some(210.0))
    );
    let ratio = guest.points.iter().find_map(|point| point.ratio).expect("a ratio");
    assert!((ratio.median - 1.05).abs() < 1e-9);
    // 19,900 ticks more for each page, and a fault for each page.
    assert_eq!(guest.fault_ns[0].ns, Some(9950.0));
    assert_eq!(guest.exits[0].ns.map(|ns| ns.median), Some(25_000.0));
    assert_eq!((guest.exits[0].emulated, guest.churn[0].emulated), (false, true));
    assert_eq!(guest.churn[0].not_measured.as_deref(), Some("the guest faulted"));
    assert_eq!(guest.kvm_stats, counts(&[("exits", 7)]));
    assert!(outcome.warnings(&guest).is_empty());
}

#[test]
fn no_latency_is_claimed_for_a_guest_that_is_emulated() {
    let outcome = outcome(2.1, 0);
    let guest = publish(&outcome);
    assert!(guest.sanity.is_some_and(|sanity| sanity.emulated));
    assert_eq!(
        (ns(&guest, None), ns(&guest, Some(GuestPage::Size4K))),
        (Some(200.0), None)
    );
    assert_eq!(outcome.warnings(&guest)[0].code, "emulated");
    let within = publish(&self::outcome(2.05, 0));
    assert!(
        within.sanity.is_some_and(|sanity| !sanity.emulated),
        "2.5 % is within 3 %"
    );
}

#[test]
fn faults_while_it_was_timed_are_a_warning() {
    let outcome = outcome(2.0, 5000);
    let warnings = outcome.warnings(&publish(&outcome));
    assert_eq!(warnings[0].code, "not-warm");
    assert!(warnings[0].text.contains("4K on base"), "{}", warnings[0].text);
}

#[test]
fn turns_whose_halves_differ_have_a_bound_and_those_that_only_scatter_a_number() {
    let mut moving = outcome(2.0, 0);
    moving.cells[0].sized[0].2 = Ok(Turns {
        native: (0..6).map(|turn| vec![400.0 + f64::from(turn % 3); 10]).collect(),
        guest: (0..6)
            .map(|turn| {
                (0..10)
                    .map(|at| 420.0 + f64::from(turn) - 10.0 * f64::from(at))
                    .collect()
            })
            .collect(),
    });
    let guest = publish(&moving);
    let warnings = moving.warnings(&guest);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].code, "not-converged");
    assert!(
        warnings[0].text.contains("64M of 4K on base") && !warnings[0].text.contains("native"),
        "{warnings:?}"
    );
    let inside = guest
        .points
        .iter()
        .find(|point| point.guest_page.is_some())
        .expect("a point");
    let bound = inside.point.bound.expect("a bound");
    assert_eq!((inside.point.ns, inside.ratio, bound.low), (None, None, None));
    assert!(
        bound.high.is_some_and(|high| (175.0..190.0).contains(&high)),
        "{bound:?}"
    );
    assert!(ns(&guest, None).is_some(), "the native side is at rest");
}

#[test]
fn turns_that_differ_widen_the_interval_however_many_samples_each_has() {
    let mut outcome = outcome(2.0, 0);
    outcome.cells[0].sized[0].2 = Ok(Turns {
        native: vec![vec![400.0; 1000]; 6].into_iter().collect(),
        guest: (0..6).map(|turn| vec![400.0 + 10.0 * f64::from(turn); 1000]).collect(),
    });
    let guest = publish(&outcome);
    let point = guest
        .points
        .iter()
        .find(|point| point.guest_page.is_some())
        .expect("a point");
    let ns = point.point.ns.expect("measured");
    assert_eq!((ns.low, ns.high, ns.samples), (200.0, 225.0, 6000));
    let ratio = point.ratio.expect("pairs");
    assert_eq!((ratio.low, ratio.high), (1.0, 1.125));
}

#[test]
fn a_fault_costs_what_its_blocks_took_longer_and_an_interrupt_does_not_count() {
    let pages = vm::beside::TOUCH_PAGES as f64;
    // Two faults of 1600 ticks, in two of ten blocks; an interrupt in the second pass of a third one.
    let (mut first, mut second) = (vec![10.0; 10], vec![10.0; 10]);
    (first[3], first[7], second[5]) = (10.0 + 1600.0 / pages, 10.0 + 1600.0 / pages, 90_000.0);
    assert_eq!(per_fault(&first, &second, 2), Some(1600.0));
    assert_eq!(per_fault(&second, &first, 0), None);
    assert_eq!(per_fault(&[10.0; 4], &[11.0; 4], 2), None, "less than nothing is noise");
}
