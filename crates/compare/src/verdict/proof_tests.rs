//! Which runs count, by their own pages and by their page faults.

use model::compare::{LeftOut, Metric, Run};
use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::effect;

/// Of a gigabyte, which is 262,144 base pages.
fn run(share: Option<f64>, faults: f64) -> Run {
    let backing = |share: f64| -> Backing {
        let thp = (share * 1024.0) as u64;
        let parts = [(PageKind::Thp, thp), (PageKind::Base, 1024 - thp)];
        parts.map(|(kind, mib)| (kind, Bytes::mib(mib))).into_iter().collect()
    };
    let unread = Unread::new(Cause::Absent, "/proc/PID/smaps", "it had ended");
    let metrics = [(Metric::Wall, 1.0), (Metric::Faults, faults)];
    let metrics = metrics.map(|(metric, value)| (metric.name().to_owned(), value));
    Run::bare(metrics, share.map(backing).ok_or(unread))
}

fn of(kind: PageKind, runs: &mut [Run]) -> (Vec<Option<LeftOut>>, Reading<bool>, f64) {
    let (coverage, took_effect) = effect(Some(kind), runs, 0.5);
    let coverage = coverage.known().map_or(f64::NAN, |share| share.median);
    (runs.iter().map(|run| run.left_out).collect(), took_effect, coverage)
}

#[test]
fn a_run_on_other_pages_does_not_count_whatever_the_median_is() {
    let mut runs: Vec<Run> = (0..8)
        .map(|at| run(Some(if at < 2 { 0.0 } else { 1.0 }), 2100.0))
        .collect();
    let (left_out, took_effect, coverage) = of(PageKind::Thp, &mut runs);
    assert_eq!(
        left_out[..3],
        [Some(LeftOut::WrongPages), Some(LeftOut::WrongPages), None]
    );
    assert_eq!((took_effect, coverage), (Reading::Known(true), 1.0));
}

#[test]
fn an_arm_with_more_than_one_in_four_runs_on_other_pages_is_not_judged() {
    let mut runs: Vec<Run> = (0..8)
        .map(|at| run(Some(if at < 3 { 0.0 } else { 1.0 }), 2100.0))
        .collect();
    let (_, took_effect, _) = of(PageKind::Thp, &mut runs);
    assert_eq!(took_effect, Reading::Known(false));
    let mut unread: Vec<Run> = (0..8).map(|at| run((at > 3).then_some(1.0), 130_000.0)).collect();
    let (left_out, took_effect, _) = of(PageKind::Thp, &mut unread);
    assert_eq!(left_out[0], Some(LeftOut::Unproved));
    assert!(matches!(took_effect, Reading::Unread(_)), "{took_effect:?}");
}

#[test]
fn page_faults_stand_for_pages_that_could_not_be_read_where_they_tell_them_apart() {
    let with = |kind: PageKind, share: f64, proved: f64, unread: f64| {
        let mut runs: Vec<Run> = (0..7).map(|_| run(Some(share), proved)).collect();
        runs.push(run(None, unread));
        of(kind, &mut runs).0[7]
    };
    assert_eq!(with(PageKind::Thp, 1.0, 2100.0, 2400.0), None);
    assert_eq!(with(PageKind::Thp, 1.0, 2100.0, 262_000.0), Some(LeftOut::OtherFaults));
    assert_eq!(with(PageKind::Base, 0.0, 262_200.0, 262_500.0), None);
    assert_eq!(with(PageKind::Base, 0.0, 262_200.0, 900.0), Some(LeftOut::OtherFaults));
    // Collapsed from outside, memory has been on base pages first: the faults are those of base pages.
    assert_eq!(with(PageKind::Thp, 1.0, 262_200.0, 262_200.0), Some(LeftOut::Unproved));
}

#[test]
fn an_interval_of_shares_ends_at_none_and_at_all() {
    let runs = |shares: &[f64]| -> Vec<Run> {
        let backing = |share: &f64| -> Backing {
            let thp = (share * 1000.0) as u64;
            let parts = [(PageKind::Thp, thp), (PageKind::Base, 1000 - thp)];
            parts.map(|(kind, mib)| (kind, Bytes::mib(mib))).into_iter().collect()
        };
        let one = |share| Run::bare([(Metric::Wall.name().to_owned(), 1.0)], Ok(backing(share)));
        shares.iter().map(one).collect()
    };
    for shares in [[0.999, 0.9, 0.999], [0.001, 0.1, 0.001]] {
        let free = stats::estimate(&shares).expect("an interval");
        assert!(free.high > 1.0, "the logarithms know no upper end: {free:?}");
        let (coverage, _) = effect(Some(PageKind::Thp), &mut runs(&shares), 0.5);
        let coverage = coverage.into_result().expect("known");
        assert!(0.0 <= coverage.low && coverage.high <= 1.0, "{coverage:?}");
        assert!(coverage.low <= coverage.median && coverage.median <= coverage.high);
    }
}
