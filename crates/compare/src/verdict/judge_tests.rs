//! Each of the conditions of a verdict by itself.

use super::{Rules, Wanted, difference, judge};
use crate::paired::Interval;
use crate::proof::effect;
use model::compare::{Arm, Metric, Run, Verdict, Why};
use model::{Backing, Bytes, PageKind, Reading};

fn arm(name: &str, kind: PageKind, times: &[(u32, bool, f64)]) -> Arm {
    let one = |&(block, again, time): &(u32, bool, f64)| {
        let backing: Backing = [(kind, Bytes::mib(64))].into_iter().collect();
        Run {
            block,
            again,
            ..Run::bare([(Metric::Wall.name().to_owned(), time)], Ok(backing))
        }
    };
    let mut runs: Vec<Run> = times.iter().map(one).collect();
    let (coverage, took_effect) = effect(Some(kind), &mut runs, 0.5);
    let (name, technique) = (name.to_owned(), String::new());
    Arm {
        name,
        technique,
        kind: Some(kind),
        place: None,
        took_effect,
        coverage,
        runs,
    }
}

/// `blocks` blocks whose reference alternates between both times of a pair.
fn base(blocks: u32, pair: (f64, f64)) -> Arm {
    let times: Vec<_> = (0..blocks)
        .flat_map(|block| [(block, false, pair.0), (block, true, pair.1)])
        .collect();
    arm("base", PageKind::Base, &times)
}

fn thp(blocks: u32, time: f64) -> Arm {
    let wobbling = |block| time * (1.0 + 0.0001 * f64::from(block));
    arm(
        "thp",
        PageKind::Thp,
        &(0..blocks)
            .map(|block| (block, false, wobbling(block)))
            .collect::<Vec<_>>(),
    )
}

fn verdict(arms: &[Arm], higher: bool) -> (Verdict, Why) {
    let wanted = [Wanted {
        name: Metric::Wall.name().to_owned(),
        higher,
    }];
    let rules = Rules {
        level: 0.05,
        smallest_effect: 0.01,
        per_start: 1,
    };
    let (judged, _) = judge(arms, &wanted, rules);
    (judged[0].verdict, judged[0].why)
}

#[test]
fn the_better_direction_is_the_metrics() {
    let arms = [base(10, (1.0, 1.0)), thp(10, 0.8)];
    assert_eq!(verdict(&arms, false).0, Verdict::Better);
    assert_eq!(verdict(&arms, true).0, Verdict::Worse);
}

#[test]
fn a_sure_but_small_difference_is_none_worth_a_verdict() {
    let verdict = verdict(&[base(10, (1.0, 1.0)), thp(10, 0.995)], false);
    assert_eq!(verdict, (Verdict::NoDifference, Why::Small));
}

#[test]
fn a_difference_no_larger_than_the_references_own_is_none() {
    let verdict = verdict(&[base(10, (1.0, 1.10)), thp(10, 0.99)], false);
    assert_eq!(verdict, (Verdict::Inconclusive, Why::Noise));
}

#[test]
fn what_is_chance_is_distinguished_from_one_of_many_questions() {
    let rules = Rules {
        level: 0.02,
        smallest_effect: 0.01,
        per_start: 1,
    };
    let why = |low| {
        let interval = Interval {
            center: 0.07,
            ends: Some((low, 0.13)),
        };
        difference(interval, 0.04, 0.02, rules)
    };
    assert_eq!(why(-0.004), (Verdict::Inconclusive, Why::Chance));
    assert_eq!(why(0.004), (Verdict::Inconclusive, Why::OneOfMany));
}

#[test]
fn no_difference_is_said_only_where_the_whole_interval_lies_within_the_smallest_effect() {
    let rules = Rules {
        level: 0.05,
        smallest_effect: 0.05,
        per_start: 1,
    };
    let verdict = |low, high| {
        let interval = Interval {
            center: (low + high) / 2.0,
            ends: Some((low, high)),
        };
        difference(interval, 0.4, 0.0, rules).0
    };
    assert_eq!(verdict(-0.04, 0.04), Verdict::NoDifference);
    assert_eq!(verdict(-0.04, 0.06), Verdict::Inconclusive);
    assert_eq!(verdict(-0.06, 0.04), Verdict::Inconclusive);
}

#[test]
fn too_few_pairs_and_values_without_a_ratio_are_said() {
    let few = verdict(&[base(5, (1.0, 1.0)), thp(5, 0.5)], false);
    assert_eq!(few, (Verdict::Unknown, Why::FewPairs));
    let zero = verdict(&[base(8, (0.0, 0.0)), thp(8, 0.5)], false);
    assert_eq!(zero, (Verdict::Unknown, Why::NoNumber));
}

#[test]
fn what_could_not_be_looked_at_is_unknown_and_not_zero() {
    let mut arms = [base(8, (1.0, 1.0)), thp(8, 0.5)];
    for run in &mut arms[1].runs {
        run.backing = Reading::absent("/proc/1/smaps");
    }
    (arms[1].coverage, arms[1].took_effect) = effect(Some(PageKind::Thp), &mut arms[1].runs, 0.5);
    assert_eq!(verdict(&arms, false), (Verdict::Unknown, Why::EffectUnread));
}
