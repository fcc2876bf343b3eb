//! Whole comparisons of processes that differ by more than their slices do: the process is what is exchanged.
#![allow(clippy::print_stderr, reason = "the rates are worth seeing")]

use std::time::Duration;

use model::PageKind;
use model::compare::{Compare, Ended, Method, Verdict, Why};

use super::super::simulated::{self, Processes};
use super::super::{Spec, Wanted, run};

/// What processes of one program differ by.
const BETWEEN: [f64; 4] = [0.005, 0.01, 0.02, 0.05];
/// What slices of one process differ by.
const WITHIN: f64 = 0.005;

fn spec(seed: u64) -> Spec {
    let wanted = Wanted {
        name: "ops".to_owned(),
        higher: true,
    };
    Spec {
        all: false,
        per_start: 4,
        smallest_effect: 0.001,
        seed,
        ..simulated::spec(Method::Slices, &[PageKind::Base; 2], wanted)
    }
}

fn compared(spec: &Spec, mut processes: Processes) -> Compare {
    let (compare, _) = run(spec, Vec::new(), &mut processes, &mut (), &()).expect("simulated");
    compare
}

fn has_verdict(compare: &Compare) -> bool {
    matches!(compare.verdicts[0].verdict, Verdict::Better | Verdict::Worse)
}

#[test]
fn of_1000_comparisons_of_a_program_with_itself_at_most_50_give_a_verdict_however_its_processes_differ() {
    for sd in BETWEEN {
        for most in [6, 30] {
            let wrong = (0..1000).filter(|&seed| {
                let spec = Spec { most, ..spec(seed) };
                has_verdict(&compared(&spec, Processes::new(&[1.0, 1.0], (sd, WITHIN), seed)))
            });
            let wrong = wrong.count();
            eprintln!("{sd}, {most} starts: {wrong} of 1000");
            assert!(wrong <= 50, "{sd}, {most} starts: {wrong}");
        }
    }
}

/// What the test above is about: with one process of each arm, and its slices exchanged as if they were processes.
#[test]
fn one_process_of_each_arm_would_give_a_verdict_by_its_luck() {
    let wrong = (0..200).filter(|&seed| {
        let one_start = Spec {
            per_start: 30,
            most: 1,
            all: true,
            ..spec(seed)
        };
        let mut compare = compared(&one_start, Processes::new(&[1.0, 1.0], (0.05, WITHIN), seed));
        assert_eq!(compare.verdicts[0].verdict, Verdict::Unknown);
        let rules = super::judge::Rules {
            level: 0.05,
            smallest_effect: 0.001,
            per_start: 1,
        };
        let (judged, _) = super::judge::judge(&compare.arms, &one_start.wanted, rules);
        compare.verdicts = judged;
        has_verdict(&compare)
    });
    let wrong = wrong.count();
    assert!(wrong >= 40, "{wrong} of 200");
}

#[test]
fn a_true_effect_is_found_where_it_is_larger_than_what_processes_differ_by() {
    let found = (0..100).filter(|&seed| {
        let compare = compared(&spec(seed), Processes::new(&[1.0, 1.05], (0.02, WITHIN), seed));
        compare.verdicts[0].verdict == Verdict::Better
    });
    let found = found.count();
    assert!(found >= 80, "{found}");
}

#[test]
fn the_interval_holds_a_known_effect_in_at_least_930_of_1000_comparisons_that_may_end_early() {
    for sd in BETWEEN {
        let held = (0..1000).filter(|&seed| {
            let compare = compared(&spec(seed), Processes::new(&[1.0, 1.05], (sd, WITHIN), seed));
            let (low, high) = compare.verdicts[0].low.zip(compare.verdicts[0].high).expect("enough");
            low <= 1.05 && 1.05 <= high
        });
        let held = held.count();
        eprintln!("{sd}: {held} of 1000");
        assert!(held >= 930, "{sd}: {held}");
    }
}

#[test]
fn time_for_fewer_than_six_starts_is_an_exploration_with_an_estimate_and_no_verdict() {
    let processes = Processes::new(&[1.0, 1.5], (0.01, WITHIN), 3).taking(Duration::from_secs(60));
    let spec = Spec {
        budget: Some(Duration::from_secs(200)),
        ..spec(3)
    };
    let compare = compared(&spec, processes);
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::Budget, 3));
    let judged = &compare.verdicts[0];
    assert_eq!((judged.verdict, judged.pairs, judged.low), (Verdict::Unknown, 3, None));
    assert!((1.4..1.6).contains(&judged.ratio.expect("an estimate")));
    assert_eq!(judged.why, Why::FewStarts);
    assert!(compare.design.spent.is_empty(), "nothing was asked");
}
