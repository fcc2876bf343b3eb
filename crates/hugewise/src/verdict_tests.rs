//! The verdict is honest about what was and was not shown.

use host::Snapshot;
use model::latency::Latency;
use model::{Bytes, Cause, PageKind, Reading, Unread};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{ends, surest, verdict};
use crate::cli::typed::Sort;
use crate::gain::{curves, gains};
use crate::results::ProcessList;
use crate::samples::{curve, machine, measured, process_rows, unmeasured, usual};

#[test]
fn a_shown_gain_names_size_kind_and_obstacle() {
    let totals = ProcessList::new(process_rows(), Sort::Large, None).totals;
    let sentences = verdict(Ok(&usual()), &machine(), Some(&totals));
    assert_eq!(sentences.len(), 3);
    assert!(
        sentences[0].contains("44.4 %") && sentences[0].contains("from 8M on"),
        "{sentences:#?}"
    );
    assert!(
        sentences[1].starts_with("Of the large kinds only thp was measured there"),
        "{sentences:#?}"
    );
    assert!(
        sentences[2].contains("ask with madvise") && sentences[2].contains("no hugetlb pool has any page"),
        "{sentences:#?}"
    );
    assert!(
        sentences[2].contains("39.1 % of the 1.5G resident in 3 processes"),
        "{sentences:#?}"
    );
}

#[test]
fn the_easiest_kind_within_noise_of_the_best_is_enough() {
    let mut latency = usual();
    latency.points.extend(
        curve(PageKind::HUGETLB_2M, |bytes| {
            let thp = usual()
                .points
                .iter()
                .find(|point| (point.kind, point.bytes) == (PageKind::Thp, bytes))
                .and_then(|point| point.ns);
            (thp.map_or(1.0, |ns| ns.median * 0.995), 0.01)
        })
        .points,
    );
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(sentences[1].starts_with("thp is enough"), "{sentences:#?}");
}

#[test]
fn the_best_of_two_kinds_has_an_interval_that_is_corrected_for_the_choice() {
    let mut latency = usual();
    latency
        .points
        .extend(curve(PageKind::HUGETLB_2M, |bytes| (0.9 * bytes.0 as f64, 0.01)).points);
    latency.points.retain(|point| point.ns.is_some());
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(
        sentences[0].contains("corrected for choosing among 2"),
        "{sentences:#?}"
    );
    let one = verdict(Ok(&usual()), &machine(), None);
    assert!(!one[0].contains("corrected"), "{one:#?}");
}

#[test]
fn kinds_that_may_differ_are_not_called_equal() {
    let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
    latency.points.extend(curve(PageKind::Thp, |_| (104.0, 0.04)).points);
    let mut pool = curve(PageKind::HUGETLB_2M, |_| (100.0, 0.04)).points;
    // Not in step with the other kind.
    pool.iter_mut().for_each(|point| point.visits.reverse());
    latency.points.extend(pool);
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(
        sentences[1].starts_with("hugetlb-2M saved most, but whether thp is as good is not settled"),
        "{sentences:#?}"
    );
}

#[test]
fn a_result_without_visits_says_that_it_cannot_tell_how_sure_it_is() {
    let mut latency = usual();
    latency.points.iter_mut().for_each(|point| point.visits.clear());
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(
        sentences[0].contains("holds no visits") && sentences[0].contains("thp 44.4 % at 1G"),
        "{sentences:#?}"
    );
    assert!(sentences[1].ends_with("not known."), "{sentences:#?}");
}

#[test]
fn a_gap_within_noise_is_no_gain() {
    let mut latency = curve(PageKind::Base, |_| (100.0, 0.05));
    latency.points.extend(curve(PageKind::Thp, |_| (95.0, 0.05)).points);
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(
        sentences[0].starts_with("No lasting gain from large pages was shown up to a working set of 1G"),
        "{sentences:#?}"
    );
}

#[test]
fn a_gap_that_closes_again_is_not_what_large_pages_buy() {
    let spike = |high: f64| move |bytes: Bytes| (if bytes == Bytes::mib(2) { high } else { 100.0 }, 0.01);
    let mut latency = curve(PageKind::Base, spike(700.0));
    latency.points.extend(curve(PageKind::Thp, spike(90.0)).points);
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(sentences[0].starts_with("No lasting gain"), "{sentences:#?}");
}

#[test]
fn nothing_measured_is_said_with_its_reason() {
    let sentences = verdict(Err("it was skipped"), &machine(), None);
    assert_eq!(
        sentences[0],
        "What large pages would buy here was not measured: it was skipped."
    );
    let mut latency = curve(PageKind::Base, |_| (100.0, 0.01));
    latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
    let sentences = verdict(Ok(&latency), &machine(), None);
    assert!(sentences[0].contains("the pool is empty"), "{sentences:#?}");
}

/// A run of base pages and three larger kinds that all take `large` times their time, in eight rounds: each round moves all
/// points by up to a tenth, and each visit its own by up to a twentieth.
fn simulated(rng: &mut Pcg64Mcg, large: f64) -> Latency {
    let kinds = [
        PageKind::Base,
        PageKind::Thp,
        PageKind::HUGETLB_2M,
        PageKind::HUGETLB_1G,
    ];
    let rounds: Vec<f64> = (0..8).map(|_| 1.0 + 0.2 * (rng.random::<f64>() - 0.5)).collect();
    let mut latency = curve(PageKind::Base, |_| (1.0, 0.0));
    latency.points.clear();
    for kind in kinds {
        for bytes in [Bytes::mib(64), Bytes::mib(256), Bytes::gib(1)] {
            let truth = if kind.is_large() { 100.0 * large } else { 100.0 };
            let mut point = measured(kind, bytes, (truth, 0.05));
            let visit = |round: &f64| truth * round * (1.0 + 0.1 * (rng.random::<f64>() - 0.5));
            point.visits = rounds.iter().map(visit).collect();
            latency.points.push(point);
        }
    }
    latency
}

#[test]
fn the_interval_of_the_kind_that_is_chosen_holds_what_it_truly_saves() {
    let mut rng = Pcg64Mcg::seed_from_u64(17);
    let held = (0..1000).filter(|_| {
        let latency = simulated(&mut rng, 0.8);
        let gains = gains(&latency);
        let best = surest(ends(&gains), curves(&gains)).expect("a kind");
        let (low, high) = best.interval(curves(&gains)).expect("visits");
        low <= 20.0 && 20.0 <= high
    });
    let held = held.count();
    assert!(held >= 930, "{held} of 1000");
}

#[test]
fn kinds_that_save_nothing_are_seldom_said_to_save_something() {
    let mut rng = Pcg64Mcg::seed_from_u64(18);
    let claims = (0..1000).filter(|_| {
        let latency = simulated(&mut rng, 1.0);
        verdict(Ok(&latency), &machine(), None)[0].starts_with("Large pages save")
    });
    let claims = claims.count();
    assert!(claims <= 50, "{claims} of 1000");
}

#[test]
fn pools_that_could_not_be_read_are_neither_absent_nor_empty() {
    let denied = || Unread::new(Cause::Denied, "/sys/kernel/mm/hugepages", "");
    let said = |machine: &Snapshot| verdict(Ok(&usual()), machine, None).remove(2);
    let mut unread = machine();
    unread.pools = Reading::Unread(denied());
    assert!(
        said(&unread).contains("whether there are hugetlb pools could not be read"),
        "{}",
        said(&unread)
    );
    let mut uncounted = machine();
    if let Reading::Known(pools) = &mut uncounted.pools {
        pools[0].nr = Reading::Unread(denied());
    }
    let said = said(&uncounted);
    assert!(
        said.contains("how many pages the hugetlb pools have could not be read"),
        "{said}"
    );
}
