//! Costs from made visits, pairs of made machines, and this machine.

use std::time::Duration;

use host::{Distances, Snapshot, Source};
use model::latency::Backed;
use model::placement::Kind;
use model::{Backing, Bytes, PageKind};

use super::live::{Moved, Visit};
use super::outcome::{Taken, moves};
use super::{Error, Spec, pairs, run};

fn backed() -> Backed {
    Backed {
        asked: PageKind::Base,
        got: Backing::new(),
        proof: "none".to_owned(),
    }
}

/// A point with visits whose moves add so much, in ns; `drift` is added to the second half of each visit.
fn point(added: &[f64], drift: f64) -> model::migration::Point {
    let mut taken = Taken::default();
    for (at, added) in added.iter().enumerate() {
        let moved = |late: f64| Moved {
            stay: 1000.0 + at as f64,
            call: 3000.0,
            there: 1000.0 + at as f64 + added + late,
        };
        let moves = vec![moved(0.0), moved(0.0), moved(drift), moved(drift)];
        taken.add(&Visit { moves, dropped: 1 });
    }
    taken.point(Kind::OtherNode, Bytes::kib(16), backed(), None)
}

#[test]
fn a_cost_that_visits_agree_on_is_a_number_and_one_that_they_do_not_a_bound() {
    let known = point(&[500.0, 505.0, 510.0, 495.0, 502.0, 507.0, 499.0], 0.0);
    let cost = known.cost_ns.expect("a cost");
    assert!((495.0..=510.0).contains(&cost.low) && cost.low <= cost.median && cost.median <= cost.high);
    assert_eq!((known.bound, known.moves, known.dropped), (None, 28, 7));
    let wide = point(&[100.0, 900.0, 500.0, 200.0, 800.0, 300.0, 700.0], 0.0);
    let bound = wide.bound.expect("a bound");
    assert!(wide.cost_ns.is_none() && bound.low.is_some_and(|low| low >= 100.0) && bound.high.is_some());
}

#[test]
fn a_cost_that_may_be_nothing_has_an_upper_limit_only() {
    let none = point(&[-20.0, 15.0, -5.0, 30.0, 2.0, -10.0, 8.0], 0.0);
    let bound = none.bound.expect("a bound");
    assert_eq!((none.cost_ns, bound.low), (None, None));
    assert!(bound.high.is_some_and(|high| (2.0..=30.0).contains(&high)), "{bound:?}");
}

#[test]
fn a_cost_that_grows_within_its_visits_is_no_number() {
    let grows = point(&[500.0, 505.0, 510.0, 495.0, 502.0, 507.0, 499.0], 300.0);
    assert!(grows.cost_ns.is_none() && grows.bound.is_some(), "{grows:?}");
}

#[test]
fn without_visits_the_reason_is_given() {
    assert!(point(&[], 0.0).not_measured.is_some());
    assert!(point(&[500.0], 0.0).not_measured.is_some_and(|why| !why.is_empty()));
    let unproved = model::NotMeasured::FellBack(backed());
    let point = Taken::default().point(Kind::SameLlc, Bytes::kib(16), backed(), Some(unproved));
    assert!(point.not_measured.is_some_and(|why| why.contains("expected base")));
    assert_eq!(moves(&(Kind::SameLlc, vec![[0, 1]]), &[]).call_ns, None);
}

#[test]
fn each_kind_of_a_machine_has_some_pairs_of_it_and_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/two-node-smt.tree");
    let source = Source::open(path.as_ref()).expect("a machine");
    let topology = Snapshot::take(&source).topology;
    let distances = Distances::of(&topology);
    let cpus: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.cpu).collect();
    let found = pairs(&cpus, &distances, 7);
    let kinds: Vec<Kind> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::SmtSibling, Kind::SameLlc, Kind::OtherNode]);
    for (kind, pairs) in &found {
        assert_eq!(pairs.len(), 4);
        assert!(pairs.iter().all(|[one, two]| distances.kind(*one, *two) == *kind));
    }
    assert_eq!(found, pairs(&cpus, &distances, 7));
    assert!(pairs(&cpus[..1], &distances, 7).is_empty());
}

fn spec(kinds: Vec<(Kind, Vec<[u32; 2]>)>) -> Spec {
    Spec {
        kinds,
        sizes: vec![Bytes::kib(16), Bytes::kib(256)],
        page: PageKind::Base,
        in_l2: Bytes::kib(256),
        beyond: Bytes::mib(8),
        is_quick: true,
        budget: Duration::from_millis(200),
        seed: 7,
    }
}

#[test]
fn this_machine_answers_for_each_kind_and_footprint_and_names_the_kinds_that_it_lacks() {
    let snapshot = Snapshot::take(&Source::live());
    let cpus = chase::thread::allowed_cpus().expect("CPUs");
    let kinds = pairs(&cpus, &Distances::of(&snapshot.topology), 7);
    if kinds.is_empty() {
        return testing::skipped("this process may use one CPU only");
    }
    let (found, _) = run(&spec(kinds.clone()), &mut (), &|| false).expect("two CPUs");
    assert_eq!(found.points.len(), 2 * kinds.len());
    for point in &found.points {
        let answers = [
            point.cost_ns.is_some(),
            point.bound.is_some(),
            point.not_measured.is_some(),
        ];
        assert_eq!(answers.iter().filter(|answer| **answer).count(), 1, "{point:?}");
        assert!(point.moves + point.dropped >= 24, "{point:?}");
        assert!(point.cost_ns.is_none_or(|cost| cost.low > 0.0), "{point:?}");
    }
    let of_pairs: usize = kinds.iter().map(|(_, pairs)| 6 + pairs.len() - 1).sum();
    assert_eq!(found.contention.len(), of_pairs);
    for case in &found.contention {
        // Whatever the machine does, a CPU at work beside another is not stopped by it.
        assert!(case.share.is_some_and(|share| share.median > 0.05), "{case:?}");
        assert!(case.again.is_some() && case.mix == case.beside, "{case:?}");
    }
    let known = Kind::KNOWN.len() - found.absent.len();
    assert_eq!(known, kinds.iter().filter(|(kind, _)| *kind != Kind::Unknown).count());
    assert_eq!(
        chase::thread::allowed_cpus().expect("CPUs"),
        cpus,
        "affinity is as before"
    );
}

#[test]
fn what_cannot_be_measured_is_an_error_that_names_it() {
    assert!(matches!(
        run(&spec(Vec::new()), &mut (), &|| false),
        Err(Error::Spec(_))
    ));
    let nowhere = vec![(Kind::SameLlc, vec![[1021, 1022]])];
    let error = run(&spec(nowhere.clone()), &mut (), &|| false).expect_err("no such CPUs");
    assert!(error.to_string().contains("CPU 1021"), "{error}");
    assert!(matches!(
        run(&spec(nowhere), &mut (), &|| true),
        Err(Error::Interrupted)
    ));
}
