//! The verdict claims what was measured, and nothing more.

use host::Snapshot;
use model::latency::Latency;
use model::verdict::{Choice, Saving, Verdict};
use model::{Bytes, Cause, PageKind, Reading, Unread};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{ends, surest};
use crate::cli::typed::Sort;
use crate::gain::{curves, gains};
use crate::render::verdict::sentences;
use crate::results::{ProcessList, Totals};
use crate::samples::{curve, machine, measured, process_rows, unmeasured, usual};

/// The verdict with its sentences.
fn verdict(latency: Result<&Latency, &str>, snapshot: &Snapshot, totals: Option<&Totals>) -> Verdict {
    let verdict = super::verdict(latency, snapshot, totals);
    Verdict {
        sentences: sentences(&verdict).to_vec(),
        ..verdict
    }
}

#[test]
fn a_saving_names_its_working_set_its_kind_and_what_limits_it() {
    let totals = ProcessList::new(process_rows(), Sort::Large, None).totals;
    let verdict = verdict(Ok(&usual()), &machine(), Some(&totals));
    let Saving::Saves {
        saved,
        from_bytes,
        kinds,
    } = &verdict.saving
    else {
        panic!("{verdict:#?}");
    };
    assert_eq!(
        (saved.kind, saved.bytes, *from_bytes),
        (PageKind::Thp, Bytes::gib(1), Bytes::mib(8))
    );
    assert!((saved.percent - 44.4).abs() < 0.1 && saved.percent_interval.is_some_and(|ends| ends.low > 40.0));
    assert_eq!(kinds.len(), 1);
    assert_eq!(verdict.choice, Choice::Only { kind: PageKind::Thp });
    assert_eq!(verdict.limits.thp, Reading::Known("madvise".to_owned()));
    let [saving, choice, limits] = &verdict.sentences[..] else {
        panic!("{verdict:#?}");
    };
    assert!(
        saving.contains("44.4 %") && saving.contains("from a working set of 8M on"),
        "{saving}"
    );
    assert!(choice.starts_with("thp is the only huge page kind"), "{choice}");
    assert!(
        limits.contains("request it with madvise") && limits.contains("No hugetlb pool has any page"),
        "{limits}"
    );
    assert!(
        limits.contains("39.1 % of the 1.5G resident in 3 processes"),
        "{limits}"
    );
}

#[test]
fn a_verdict_is_read_back_from_its_json() {
    let mut shown = usual();
    shown
        .points
        .extend(curve(PageKind::HUGETLB_2M, |bytes| (0.9 * bytes.0 as f64, 0.01)).points);
    let mut without_visits = usual();
    without_visits.points.iter_mut().for_each(|point| point.visits.clear());
    for latency in [Ok(&shown), Ok(&without_visits), Err("it was skipped")] {
        let verdict = verdict(latency, &machine(), None);
        let json = serde_json::to_string(&verdict).expect("JSON");
        assert_eq!(serde_json::from_str::<Verdict>(&json).expect("a verdict"), verdict);
    }
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
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(
        matches!(
            verdict.choice,
            Choice::Enough { kind: PageKind::Thp, best: PageKind::HUGETLB_2M, at_most_percent } if at_most_percent < 3.0
        ),
        "{verdict:#?}"
    );
    assert!(verdict.sentences[1].starts_with("thp is enough"), "{verdict:#?}");
}

#[test]
fn the_best_of_two_kinds_has_an_interval_that_is_corrected_for_the_choice() {
    let mut latency = usual();
    latency
        .points
        .extend(curve(PageKind::HUGETLB_2M, |bytes| (0.9 * bytes.0 as f64, 0.01)).points);
    latency.points.retain(|point| point.ns.is_some());
    let two = verdict(Ok(&latency), &machine(), None).sentences;
    assert!(two[0].contains("corrected for choosing among 2"), "{two:#?}");
    let one = verdict(Ok(&usual()), &machine(), None).sentences;
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
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(
        matches!(
            verdict.choice,
            Choice::Open { best: PageKind::HUGETLB_2M, rival: PageKind::Thp, more_percent } if more_percent.low <= 0.0
        ),
        "{verdict:#?}"
    );
    assert!(
        verdict.sentences[1].starts_with("hugetlb-2M saved most, but thp may be as good"),
        "{verdict:#?}"
    );
}

#[test]
fn a_result_without_visits_has_a_saving_without_an_interval() {
    let mut latency = usual();
    latency.points.iter_mut().for_each(|point| point.visits.clear());
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(
        verdict.sentences[0].contains("fewer than two visits")
            && verdict.sentences[0].contains("thp saved 44.4 % at 1G"),
        "{verdict:#?}"
    );
    assert!(verdict.sentences[1].ends_with("not known."), "{verdict:#?}");
    assert_eq!(verdict.choice, Choice::Unknown);
}

#[test]
fn a_gap_within_noise_is_no_saving() {
    let mut latency = curve(PageKind::Base, |_| (100.0, 0.05));
    latency.points.extend(curve(PageKind::Thp, |_| (95.0, 0.05)).points);
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(
        verdict.sentences[0].starts_with("Huge pages show no lasting saving up to a working set of 1G"),
        "{verdict:#?}"
    );
    assert_eq!(verdict.choice, Choice::NoDifference);
}

#[test]
fn a_gap_that_closes_again_is_no_saving() {
    let spike = |high: f64| move |bytes: Bytes| (if bytes == Bytes::mib(2) { high } else { 100.0 }, 0.01);
    let mut latency = curve(PageKind::Base, spike(700.0));
    latency.points.extend(curve(PageKind::Thp, spike(90.0)).points);
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(matches!(verdict.saving, Saving::NoDifference { .. }), "{verdict:#?}");
}

#[test]
fn without_a_measurement_the_reason_is_quoted() {
    let skipped = verdict(Err("it was skipped"), &machine(), None);
    assert_eq!(
        skipped.sentences[0],
        "The saving by huge pages was not measured: it was skipped."
    );
    let mut latency = curve(PageKind::Base, |_| (100.0, 0.01));
    latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
    let verdict = verdict(Ok(&latency), &machine(), None);
    assert!(verdict.sentences[0].contains("the pool is empty"), "{verdict:#?}");
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
fn kinds_that_save_nothing_are_rarely_reported_to_save_something() {
    let mut rng = Pcg64Mcg::seed_from_u64(18);
    let claims = (0..1000).filter(|_| {
        let latency = simulated(&mut rng, 1.0);
        matches!(verdict(Ok(&latency), &machine(), None).saving, Saving::Saves { .. })
    });
    let claims = claims.count();
    assert!(claims <= 50, "{claims} of 1000");
}

#[test]
fn pools_that_could_not_be_read_are_neither_absent_nor_empty() {
    let denied = || Unread::new(Cause::Denied, "/sys/kernel/mm/hugepages", "");
    let limits = |machine: &Snapshot| verdict(Ok(&usual()), machine, None).sentences.remove(2);
    let mut unread = machine();
    unread.pools = Reading::Unread(denied());
    assert!(
        limits(&unread).contains("The hugetlb pools could not be read"),
        "{}",
        limits(&unread)
    );
    let mut uncounted = machine();
    if let Reading::Known(pools) = &mut uncounted.pools {
        pools[0].nr = Reading::Unread(denied());
    }
    let limits = limits(&uncounted);
    assert!(
        limits.contains("The size of a hugetlb pool could not be read"),
        "{limits}"
    );
}
