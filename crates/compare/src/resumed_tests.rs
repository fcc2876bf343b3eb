//! Whole comparisons that are resumed and that end early, on recorded noise: looks that were made stay made.
#![allow(clippy::print_stderr, reason = "the rates are worth seeing")]

use std::time::Duration;

use model::PageKind;
use model::compare::{Ended, Judged, Method, Metric, Run, Spent, Verdict};

use super::super::simulated::{self, Simulated};
use super::super::{Error, Keep, Slot, Spec, Wanted, run};

const KINDS: [PageKind; 2] = [PageKind::Base, PageKind::Thp];

fn spec(metric: Metric, seed: u64) -> Spec {
    let wanted = Wanted {
        name: metric.name().to_owned(),
        higher: false,
    };
    Spec {
        all: false,
        seed,
        ..simulated::spec(Method::Runs, &KINDS, wanted)
    }
}

#[derive(Clone, Default)]
struct Log {
    runs: Vec<(Slot, Run)>,
    looks: Vec<Spent>,
}

impl Keep for Log {
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error> {
        self.runs.push((slot, run.clone()));
        Ok(())
    }

    fn look(&mut self, look: Spent) -> Result<(), Error> {
        self.looks.push(look);
        Ok(())
    }
}

/// A session that goes on with the log of those before.
fn session(spec: &Spec, executor: &mut Simulated, log: &mut Log) -> model::compare::Compare {
    let spec = Spec {
        looked: log.looks.clone(),
        ..spec.clone()
    };
    let done = log.runs.clone();
    let (compare, _) = run(&spec, done, executor, log, &()).expect("simulated");
    compare
}

fn is_verdict(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Better | Verdict::Worse)
}

fn sessions(most: &[u32], all: bool, metric: Metric, seed: u64) -> bool {
    let mut executor = Simulated::new(&[1.0, 1.0], &KINDS, seed);
    let mut log = Log::default();
    let verdicts = most.iter().map(|&most| {
        let spec = Spec {
            most,
            all,
            ..spec(metric, seed)
        };
        is_verdict(&session(&spec, &mut executor, &mut log).verdicts[0])
    });
    // All sessions are made, as by a user who never has enough.
    let verdicts: Vec<bool> = verdicts.collect();
    verdicts.contains(&true)
}

#[test]
fn of_1000_comparisons_of_a_program_with_itself_resumed_to_three_times_the_runs_at_most_50_give_a_verdict() {
    let plans: [(&[u32], bool, Metric); 4] = [
        (&[10, 20, 30], true, Metric::Wall),
        (&[10, 20, 30], true, Metric::Cpu),
        (&[10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30], true, Metric::Cpu),
        (&[10, 20, 30], false, Metric::Wall),
    ];
    for (most, all, metric) in plans {
        let wrong = (0..1000).filter(|&seed| sessions(most, all, metric, seed)).count();
        eprintln!("{most:?}, all: {all}, {metric:?}: {wrong} of 1000");
        assert!(wrong <= 50, "{most:?} {metric:?}: {wrong}");
    }
}

#[test]
fn the_interval_holds_a_known_effect_in_at_least_930_of_1000_comparisons_that_end_early() {
    for (effect, metric) in [(1.03, Metric::Cpu), (1.01, Metric::Cpu), (1.15, Metric::Wall)] {
        let mut early = 0;
        let held = (0..1000).filter(|&seed| {
            let mut executor = Simulated::new(&[1.0, 1.0 / effect], &KINDS, seed);
            let compare = session(&spec(metric, seed), &mut executor, &mut Log::default());
            early += u32::from(compare.design.blocks < 30);
            let judged = &compare.verdicts[0];
            let (low, high) = judged.low.zip(judged.high).expect("enough blocks");
            low <= effect && effect <= high
        });
        let held = held.count();
        eprintln!("{effect}, {metric:?}: {held} of 1000 hold it, {early} ended early");
        assert!(held >= 930, "{effect}: {held}");
        assert!(early >= 50, "{effect}: only {early} ended early");
    }
}

#[test]
fn what_is_looked_at_again_spends_nothing_and_tells_the_same() {
    let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 3);
    let mut log = Log::default();
    let first = session(&spec(Metric::Cpu, 3), &mut executor, &mut log);
    assert_eq!((first.design.ended, first.design.blocks), (Ended::Settled, 10));
    let again = session(&spec(Metric::Cpu, 3), &mut executor, &mut log);
    assert_eq!((again.design.blocks, &again.verdicts), (10, &first.verdicts));
    assert_eq!((log.looks.len(), executor.made.len()), (1, 30));
    let all = Spec {
        all: true,
        most: 20,
        ..spec(Metric::Cpu, 3)
    };
    let more = session(&all, &mut executor, &mut log);
    assert_eq!((more.design.blocks, log.looks.len()), (20, 2));
    assert_eq!(more.design.spent, log.looks);
    assert!(log.looks.iter().map(|look| look.level).sum::<f64>() < 0.05);
}

#[test]
fn an_interruption_is_an_early_look_and_what_follows_has_nearly_the_whole() {
    let mut executor = Simulated::new(&[1.0, 1.0], &KINDS, 9);
    executor.interrupted_after = 36;
    let mut log = Log::default();
    let cut = session(&spec(Metric::Cpu, 9), &mut executor, &mut log);
    assert_eq!((cut.design.ended, cut.design.blocks), (Ended::Interrupted, 12));
    let spent: f64 = log.looks.iter().map(|look| look.level).sum();
    assert!(spent < 0.004, "{:?}", log.looks);
}

#[test]
fn warming_up_takes_half_of_the_time_at_most_and_that_is_told() {
    let spec = Spec {
        warm_up: 1000,
        budget: Some(Duration::from_secs(60)),
        ..spec(Metric::Cpu, 1)
    };
    let mut executor = Simulated::new(&[1.0, 1.0], &KINDS, 1);
    let (compare, warnings) = run(&spec, Vec::new(), &mut executor, &mut (), &()).expect("simulated");
    assert!(
        (1..1000).contains(&compare.design.warm_up),
        "{}",
        compare.design.warm_up
    );
    assert!(
        warnings.iter().any(|warning| warning.code == "warm-up-cut"),
        "{warnings:?}"
    );
    assert!(
        compare.design.seconds < 70.0 && compare.design.blocks >= 6,
        "{}",
        compare.design.seconds
    );
}

#[test]
fn the_time_of_a_comparison_is_that_of_all_its_sessions() {
    let seconds = |earlier| {
        let spec = Spec {
            earlier,
            ..spec(Metric::Cpu, 3)
        };
        let mut executor = Simulated::new(&[1.0, 0.7], &KINDS, 3);
        session(&spec, &mut executor, &mut Log::default()).design.seconds
    };
    let more = seconds(Duration::from_secs(100)) - seconds(Duration::ZERO);
    assert!((more - 100.0).abs() < 1e-6, "{more}");
}
