//! Whole comparisons on recorded noise: false verdicts are rare, true effects are found, and nothing finished is lost.

use std::time::Duration;

use model::PageKind;
use model::compare::{Ended, Judged, Method, Metric, Order, Run, Verdict, Why};

use super::super::simulated::{self, Missing, Simulated, Told};
use super::super::{Error, Executor, Keep, Slot, Spec, Wanted, run};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const KINDS: [PageKind; 3] = [PageKind::Base, PageKind::Thp, PageKind::HUGETLB_2M];

fn spec(arms: usize, metric: Metric, seed: u64) -> Spec {
    let wanted = Wanted {
        name: metric.name().to_owned(),
        higher: false,
    };
    Spec {
        all: false,
        warm_up: 1,
        seed,
        ..simulated::spec(Method::Runs, &KINDS[..arms], wanted)
    }
}

fn judged(spec: &Spec, effects: &[f64]) -> Vec<Judged> {
    let mut executor = Simulated::new(effects, &KINDS, spec.seed);
    let (compare, _) = run(spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    compare.verdicts
}

/// None of which may contradict its interval.
fn verdicts(spec: &Spec, effects: &[f64]) -> Vec<Verdict> {
    let verdict = |judged: Judged| {
        let leaves_one_out = match judged.verdict {
            Verdict::Better => judged.low > Some(1.0),
            Verdict::Worse => judged.high.is_some_and(|high| high < 1.0),
            _ => true,
        };
        assert!(leaves_one_out, "{judged:?}");
        judged.verdict
    };
    judged(spec, effects).into_iter().map(verdict).collect()
}

fn is_verdict(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// Comparisons out of `of` in which any arm got a verdict.
fn with_verdict(of: u64, metric: Metric, effects: &[f64], order: Order) -> usize {
    let comparison = |seed: &u64| {
        let spec = Spec {
            order,
            ..spec(effects.len(), metric, *seed)
        };
        verdicts(&spec, effects).iter().any(is_verdict)
    };
    (0..of).filter(comparison).count()
}

#[test]
fn of_200_comparisons_of_a_program_with_itself_at_most_10_give_a_verdict() {
    for metric in [Metric::Wall, Metric::Cpu] {
        let wrong = with_verdict(200, metric, &[1.0, 1.0], Order::Mirrored);
        assert!(wrong <= 10, "{metric:?}: {wrong}");
    }
    let wrong = with_verdict(100, Metric::Cpu, &[1.0, 1.0], Order::Random);
    assert!(wrong <= 5, "random order: {wrong}");
}

#[test]
fn several_arms_and_looks_do_not_add_up_to_more_false_verdicts() {
    let wrong = with_verdict(400, Metric::Cpu, &[1.0, 1.0, 1.0], Order::Mirrored);
    assert!(wrong <= 20, "{wrong}");
}

#[test]
fn a_true_effect_of_3_percent_is_found_in_80_of_100_comparisons_within_30_pairs() {
    let found = |effect: f64| {
        let comparison = |seed: &u64| verdicts(&spec(2, Metric::Cpu, *seed), &[1.0, effect]);
        (0..100).map(|seed| comparison(&seed)).collect::<Vec<_>>()
    };
    let better = found(1.0 / 1.03)
        .into_iter()
        .filter(|verdicts| *verdicts == [Verdict::Better])
        .count();
    let worse = found(1.03)
        .into_iter()
        .filter(|verdicts| *verdicts == [Verdict::Worse])
        .count();
    assert!(better >= 80 && worse >= 80, "{better} better, {worse} worse");
}

#[test]
fn on_recorded_noise_the_interval_holds_a_known_effect_in_at_least_930_of_1000_comparisons() {
    for (most, metric) in [(6, Metric::Cpu), (10, Metric::Wall), (20, Metric::Cpu)] {
        let holds = |seed: &u64| {
            let spec = Spec {
                all: true,
                most,
                ..spec(2, metric, *seed)
            };
            let judged = &judged(&spec, &[1.0, 1.0 / 1.03])[0];
            let (low, high) = judged.low.zip(judged.high).expect("enough blocks");
            low <= 1.03 && 1.03 <= high
        };
        let held = (0..1000).filter(holds).count();
        assert!(held >= 930, "{most} blocks, {metric:?}: {held} of 1000");
    }
}

#[test]
fn in_wall_times_of_a_machine_shared_with_others_15_percent_are_found() {
    let found = with_verdict(100, Metric::Wall, &[1.0, 1.0 / 1.15], Order::Mirrored);
    assert!(found >= 80, "{found}");
}

#[test]
fn a_large_effect_ends_it_at_the_first_look_and_all_runs_are_made_on_request() {
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 3);
    let (compare, _) = run(&spec(2, Metric::Cpu, 3), Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::Settled, 10));
    let ratio = compare.verdicts[0].ratio.expect("a ratio");
    assert!((1.35..1.5).contains(&ratio), "{ratio}");
    let spec = Spec {
        all: true,
        most: 12,
        ..spec(2, Metric::Cpu, 3)
    };
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 3);
    let (compare, _) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::Runs, 12));
}

#[test]
fn an_arm_without_its_pages_is_not_in_effect_however_fast_it_was() {
    let kinds = [PageKind::Base, PageKind::Base];
    let mut executor = Simulated::new(&[1.0, 0.5], &kinds, 1);
    let (compare, _) = run(&spec(2, Metric::Cpu, 1), Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    let judged = &compare.verdicts[0];
    assert_eq!((judged.verdict, judged.why), (Verdict::NotInEffect, Why::NotInEffect));
    assert_eq!(compare.arms[1].coverage.known().map(|share| share.median), Some(0.0));
    assert_eq!(
        (compare.design.ended, compare.design.blocks),
        (Ended::Settled, 2),
        "more would show no more"
    );
}

#[test]
fn a_reference_without_its_pages_ends_it_after_one_run() {
    for warm_up in [0, 1] {
        let spec = Spec {
            warm_up,
            ..spec(2, Metric::Cpu, 1)
        };
        let mut executor = Simulated::new(&[1.0, 0.5], &[PageKind::Thp, PageKind::Thp], 1);
        let error = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect_err("no base pages");
        assert!(
            matches!(
                error,
                Error::Reference {
                    kind: PageKind::Base,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(executor.made.iter().filter(|arm| **arm == 0).count(), 1);
    }
}

#[test]
fn too_little_time_still_makes_the_runs_without_which_nothing_can_be_said() {
    let spec = Spec {
        budget: Some(Duration::from_millis(10)),
        ..spec(2, Metric::Cpu, 5)
    };
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 5);
    let (compare, warnings) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::Settled, 6));
    assert_eq!(compare.verdicts[0].verdict, Verdict::Better, "{warnings:?}");
}

#[test]
fn a_time_that_was_asked_for_is_kept_and_is_said_to_be_too_short_at_once() {
    let run_time = |budget: f64| {
        let spec = Spec {
            budget: Some(Duration::from_secs_f64(budget)),
            is_budget_kept: true,
            ..spec(2, Metric::Cpu, 5)
        };
        let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 5);
        let told = Told::default();
        let made = run(&spec, Vec::new(), &mut executor, &mut (), &told);
        (made, executor, told.least.get())
    };
    let (enough, _, least) = run_time(600.0);
    assert!(enough.is_ok() && least.is_none());
    // One of the recorded runs takes 0.2 to 0.6 s. Blocks without a verdict are not made.
    let (few, executor, _) = run_time(4.0);
    assert!(
        matches!(few, Err(Error::Budget { least, .. }) if least > Duration::from_secs(4)) && executor.made.len() == 2
    );
    let (none, executor, _) = run_time(0.5);
    assert!(matches!(none, Err(Error::Budget { .. })) && executor.made.len() == 1);
}

#[test]
fn a_time_that_was_asked_for_bounds_any_number_of_warm_up_runs_and_of_runs() {
    let spec = Spec {
        budget: Some(Duration::from_secs(60)),
        is_budget_kept: true,
        all: true,
        most: 6,
        warm_up: u32::MAX,
        ..spec(2, Metric::Cpu, 5)
    };
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 5);
    let (compare, _) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("six blocks");
    assert!(
        compare.design.warm_up < 200 && compare.design.blocks == 6,
        "{:?}",
        compare.design
    );
    assert!(executor.elapsed() < Duration::from_secs(62), "{:?}", executor.elapsed());
}

/// Keeps runs in memory.
#[derive(Default)]
struct Kept(Vec<(Slot, Run)>);

impl Keep for Kept {
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error> {
        self.0.push((slot, run.clone()));
        Ok(())
    }
}

#[test]
fn what_was_finished_before_an_interruption_is_kept_and_not_made_again() {
    let spec = Spec {
        all: true,
        most: 8,
        warm_up: 0,
        ..spec(2, Metric::Cpu, 9)
    };
    let mut kept = Kept::default();
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 9);
    executor.interrupted_after = 10;
    let (compare, _) = run(&spec, Vec::new(), &mut executor, &mut kept, &()).expect("three blocks");
    assert_eq!(
        (compare.design.ended, compare.design.blocks, kept.0.len()),
        (Ended::Interrupted, 3, 10)
    );
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 10);
    let done = kept.0.clone();
    let (compare, _) = run(&spec, done, &mut executor, &mut kept, &()).expect("the rest");
    assert_eq!((compare.design.blocks, executor.made.len(), kept.0.len()), (8, 14, 24));
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 9);
    executor.interrupted_after = 2;
    let error = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect_err("not one block");
    assert!(matches!(error, Error::Interrupted));
}

/// Comparisons in which a random share of the runs, up to 60 %, does not get its pages and takes `times` as long as the reference.
fn with_missing(of: u64, effect: f64, times: f64) -> Vec<Judged> {
    let comparison = |seed: u64| {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut executor = Simulated::new(&[1.0, effect], &KINDS, seed);
        let share = rng.random::<f64>() * 0.6;
        executor.missing = Some(Missing { share, times, rng });
        let spec = spec(2, Metric::Cpu, seed);
        let (mut compare, warnings) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
        let left_out = compare.arms[1].runs.iter().filter(|run| run.left_out.is_some()).count();
        assert_eq!(
            left_out > 0,
            warnings.iter().any(|warning| warning.code == "coverage-varies")
        );
        if left_out * 4 > compare.arms[1].runs.len() {
            assert!(!is_verdict(&compare.verdicts[0].verdict), "{:?}", compare.verdicts);
        }
        compare.verdicts.remove(0)
    };
    (0..of).map(comparison).collect()
}

#[test]
fn runs_without_their_pages_make_no_false_verdicts() {
    for times in [1.2, 0.8] {
        let judged = with_missing(400, 1.0, times);
        let wrong = judged.iter().filter(|judged| is_verdict(&judged.verdict)).count();
        assert!(wrong <= 20, "{times}: {wrong}");
    }
}

#[test]
fn the_interval_holds_the_gain_of_the_runs_that_got_their_pages() {
    let judged = with_missing(1000, 1.0 / 1.1, 1.0);
    let intervals: Vec<(f64, f64)> = judged.iter().filter_map(|judged| judged.low.zip(judged.high)).collect();
    let held = intervals
        .iter()
        .filter(|(low, high)| *low <= 1.1 && 1.1 <= *high)
        .count();
    assert!(
        intervals.len() > 500 && held * 100 >= intervals.len() * 93,
        "{held} of {}",
        intervals.len()
    );
}
