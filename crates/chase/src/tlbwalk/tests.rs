//! Tours through private and shared pages: what is timed, and what is refused.

use super::{Behind, Flush, Span};
use crate::clock::CoreClock;
use model::{Bytes, PageKind};

fn offsets(pages: u64) -> Vec<u64> {
    (0..pages).map(|page| page * 4096 + page % 64 * 64).collect()
}

fn time(tour: &super::Tour) -> f64 {
    let clock = CoreClock::new();
    (0..1000)
        .find_map(|_| tour.cycles(&clock))
        .expect("one undisturbed timing in a thousand")
}

#[test]
fn a_ring_and_a_list_visit_private_pages() {
    let mut span = Span::reserve(PageKind::Base, 100, Behind::Private).expect("a little memory");
    let mut list = Span::reserve(PageKind::Base, 1, Behind::Private).expect("a little memory");
    let offsets = offsets(100);
    let ring = time(&span.ring(&offsets));
    let listed = time(&span.listed(&offsets, &mut list));
    assert!(
        ring > 1.0 && listed > 1.0,
        "loads that need one another take cycles: {ring} {listed}"
    );
    assert_eq!(span.large_share(Bytes(100 * 4096)).unwrap_or(0.0), 0.0);
}

#[test]
fn base_pages_are_proved_to_be_none_that_large_entries_map() {
    for behind in [Behind::Private, Behind::OnePage] {
        let mut span = Span::reserve(PageKind::Base, 1 << 12, behind).expect("address space");
        let proof = span
            .prove(Bytes::mib(2), 4)
            .expect("pagemap is readable")
            .expect("16 MiB");
        assert_eq!(proof.share, 0.0, "{behind:?} {proof:?}");
    }
    let mut short = Span::reserve(PageKind::Base, 8, Behind::Private).expect("address space");
    assert_eq!(short.prove(Bytes::mib(2), 4).expect("nothing is asked"), None);
}

#[test]
fn pages_that_are_one_page_take_no_memory_and_stay_readable() {
    let mut span = Span::reserve(PageKind::Base, 1 << 18, Behind::OnePage).expect("address space");
    let mut list = Span::reserve(PageKind::Base, 64, Behind::Private).expect("a little memory");
    let sparse: Vec<u64> = (0..1000).map(|n| n * 128 * 4096).collect();
    assert!(time(&span.listed(&sparse, &mut list)) > 1.0);
    assert_eq!(span.address() % (1 << 30), 0, "aligned to its own size");
}

#[test]
#[should_panic(expected = "beyond the span")]
fn nothing_beyond_the_span_is_touched() {
    let mut span = Span::reserve(PageKind::Base, 2, Behind::Private).expect("a little memory");
    span.ring(&[0, 8192]);
}

#[test]
fn a_pool_without_pages_is_an_error() {
    let size = Bytes::gib(1 << 10);
    assert!(Span::reserve(PageKind::Hugetlb(size), 1, Behind::OnePage).is_err());
}

#[test]
fn emptied_tlbs_and_other_orders_leave_pages_as_they_are() {
    let clock = CoreClock::new();
    let flush = Flush::new().expect("a little memory");
    let mut span = Span::reserve(PageKind::Base, 64, Behind::Private).expect("a little memory");
    let mut list = Span::reserve(PageKind::Base, 1, Behind::Private).expect("a little memory");
    let offsets = offsets(64);
    span.listed(&offsets, &mut list).stir();
    let tour = span.ring(&offsets);
    tour.stir();
    let from_empty = (0..1000).find_map(|_| tour.cycles_from_empty(&flush, &clock));
    assert!(from_empty.is_some_and(|cycles| cycles > 1.0), "{from_empty:?}");
}
