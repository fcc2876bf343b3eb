//! From samples and proofs to the result: points with numbers or reasons, and warnings. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use model::kernelops::{Op, Point};
use model::latency::Backed;
use model::{Backing, NotMeasured, PageKind, Warning};

use super::plan::Target;
use super::samples::Samples;
use super::sweep::Sampled;
use crate::visits::bound_in;
use crate::warnings;

/// Above this share of processor time used by others the machine was busy with something else.
const BUSY: f64 = 0.1;
/// Where two visits to one point differ by more than this on average, they were not under the same conditions.
const UNSTEADY: f64 = 0.15;
/// At least this share of the memory must be of the kind asked for.
const ENOUGH: f64 = 0.99;
/// So many faults more than there should be are allowed: a stack or a counter may fault too.
const MORE_FAULTS: f64 = 0.05;

/// The points as they are published.
pub(super) fn points(targets: &[Target], sampled: &Sampled, ticks_per_ns: f64) -> Vec<Point> {
    let candidates = measured(targets, sampled).len();
    let publish = |(target, samples)| point(target, samples, candidates, ticks_per_ns);
    targets.iter().zip(&sampled.samples).map(publish).collect()
}

/// `candidates` is the number of points that are asked whether they were at rest.
fn point(target: &Target, samples: &Samples, candidates: usize, ticks_per_ns: f64) -> Point {
    let Target { op, workers } = *target;
    let backing = op.kind().map(|kind| backed(kind, samples));
    let reason = reason(op, samples, backing.as_ref());
    let moving = samples.visits.moving(candidates).filter(|_| reason.is_none());
    let is_at_rest = reason.is_none() && moving.is_none();
    let ticks = samples.visits.estimate().filter(|_| is_at_rest);
    Point {
        op,
        workers,
        ns: ticks.map(|ticks| ticks.scaled(1.0 / ticks_per_ns)),
        bound: moving.map(|bound| bound_in(bound, ticks_per_ns)),
        settled: is_at_rest && samples.is_settled(),
        operations: samples.operations,
        per_operation: per_operation(samples),
        backing,
        dropped: samples.dropped,
        not_measured: reason.map(|why| why.to_string()),
    }
}

fn backed(asked: PageKind, samples: &Samples) -> Backed {
    let (got, proof) = match samples.proof() {
        Ok((got, account)) => (got.clone(), account.to_owned()),
        Err(why) => (Backing::new(), why.to_string()),
    };
    Backed { asked, got, proof }
}

/// Why there is no number, if there is none.
fn reason(op: Op, samples: &Samples, backing: Option<&Backed>) -> Option<NotMeasured> {
    if let Some(why) = &samples.refused {
        return Some(why.clone());
    }
    if samples.visits.samples.is_empty() {
        return Some(NotMeasured::Disturbed {
            dropped: samples.dropped,
            by_clock: false,
        });
    }
    if samples.visits.estimate().is_none() {
        return Some(NotMeasured::OneVisit);
    }
    backing
        .and_then(|backed| not_as_asked(op, samples, backed))
        .or_else(|| surplus_faults(op, samples))
}

fn not_as_asked(op: Op, samples: &Samples, backed: &Backed) -> Option<NotMeasured> {
    if let Err(why) = samples.proof() {
        return Some(NotMeasured::Unproved(why.clone()));
    }
    if matches!(op, Op::ZeroRead { .. }) {
        let any = backed.got.total().0 > 0;
        return any.then(|| NotMeasured::NotTheZeroPage(backed.clone()));
    }
    let enough = backed.got.share(backed.asked).is_some_and(|share| share >= ENOUGH);
    (!enough).then(|| NotMeasured::FellBack(backed.clone()))
}

/// One operation on one page is one fault; more mean that the kernel gave smaller pages.
fn surplus_faults(op: Op, samples: &Samples) -> Option<NotMeasured> {
    let expected = match op {
        Op::AnonWrite { .. } | Op::ZeroRead { .. } | Op::Cow | Op::FileRead => 1.0,
        _ => return None,
    };
    let seen = samples.per_operation("faults");
    ((seen - expected).abs() > MORE_FAULTS).then(|| NotMeasured::OtherFaults((seen * 100.0).round() as u64))
}

/// What was counted at all, per operation.
fn per_operation(samples: &Samples) -> BTreeMap<String, f64> {
    let faults = samples.per_operation("faults");
    let pages = samples.per_operation("pages");
    let plain = ["faults", "signals", "children", "switches", "preemptions"];
    let counted = plain.map(|name| (name, samples.per_operation(name)));
    let around = (pages > 0.0 && faults > 0.0).then_some(("pages-per-fault", pages / faults));
    let all = counted.into_iter().chain(around).filter(|&(_, count)| count > 0.0);
    all.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// What weakens the result; `others` is the share of processor time that other processes used during the run.
pub(super) fn warnings(targets: &[Target], sampled: &Sampled, budget: Duration, others: Option<f64>) -> Vec<Warning> {
    let measured = measured(targets, sampled);
    let apart = measured
        .iter()
        .filter_map(|(target, samples)| Some((target.to_string(), samples.visits.disagreement()?)));
    let is_moving = |(_, samples): &&(&Target, &Samples)| samples.visits.moving(measured.len()).is_some();
    let moving = measured.iter().filter(is_moving).map(|(target, _)| target.to_string());
    let open = measured.iter().filter(|(_, samples)| !samples.is_settled()).count();
    let all = [
        busy(others),
        warnings::rounds_disagree(apart, targets.len(), UNSTEADY),
        warnings::not_converged(moving, targets.len()),
        warnings::short_budget(open, measured.len(), 2, budget),
    ];
    let mut warnings: Vec<Warning> = all.into_iter().flatten().collect();
    warnings.sort();
    warnings
}

/// An operation of several processes does not show what else ran in between; the counters of the whole machine do.
fn busy(others: Option<f64>) -> Option<Warning> {
    let share = others.filter(|&share| share > BUSY)? * 100.0;
    Some(Warning::new(
        "busy-machine",
        format!(
            "other processes used {share:.0} % of all processor time, so that operations of several processes (fw, pcd, \
             nps, exec) waited for them; repeat on a quieter machine"
        ),
    ))
}

fn measured<'a>(targets: &'a [Target], sampled: &'a Sampled) -> Vec<(&'a Target, &'a Samples)> {
    let all = targets.iter().zip(&sampled.samples);
    all.filter(|(_, samples)| samples.refused.is_none()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use host::processes::Proof;
    use model::kernelops::Op;
    use model::{Backing, Bytes, NotMeasured, PageKind, Reading};

    use super::{points, warnings};
    use crate::kernelops::plan::Target;
    use crate::kernelops::samples::{Samples, Visit};
    use crate::kernelops::sweep::Sampled;
    use crate::kernelops::worker::Taken;

    fn taken(faults: u64, backing: Option<Backing>) -> Taken {
        Taken {
            ticks: vec![200.0; 40],
            dropped: 0,
            operations: 100,
            counts: [("faults".to_owned(), faults), ("pages".to_owned(), 1600)].into(),
            proof: backing.map(|backing| {
                Reading::Known(Proof {
                    backing,
                    account: "PAGEMAP_SCAN".to_owned(),
                })
            }),
        }
    }

    fn of(op: Op, visits: Vec<Visit>) -> (Vec<Target>, Sampled) {
        let mut samples = Samples::default();
        visits.into_iter().for_each(|visit| samples.add(visit));
        let sampled = Sampled {
            samples: vec![samples],
            rounds: 1,
        };
        (vec![Target { op, workers: 2 }], sampled)
    }

    fn reason(op: Op, visit: Visit) -> Option<String> {
        let (targets, sampled) = of(op, vec![visit.clone(), visit]);
        let point = points(&targets, &sampled, 2.0).remove(0);
        assert_eq!(point.ns.is_none(), point.not_measured.is_some());
        point.not_measured
    }

    fn only(kind: PageKind) -> Option<Backing> {
        Some([(kind, Bytes::mib(2))].into_iter().collect())
    }

    #[test]
    fn ticks_become_nanoseconds_and_counts_stand_beside_them() {
        let (targets, sampled) = of(Op::FileRead, vec![Ok(vec![taken(100, None)]); 2]);
        let point = points(&targets, &sampled, 2.0).remove(0);
        assert_eq!(point.ns.expect("measured").median, 100.0);
        assert_eq!(point.per_operation["pages-per-fault"], 16.0);
        assert!(!point.per_operation.contains_key("signals"));
    }

    #[test]
    fn memory_of_another_kind_has_no_number_but_a_reason() {
        let thp = Op::AnonWrite { kind: PageKind::Thp };
        assert_eq!(reason(thp, Ok(vec![taken(100, only(PageKind::Thp))])), None);
        let why = reason(thp, Ok(vec![taken(100, only(PageKind::Base))])).expect("fell back");
        assert!(why.contains("expected thp, got base 4M"), "{why}");
        let why = reason(thp, Ok(vec![taken(120, only(PageKind::Thp))])).expect("some fell back");
        assert!(why.contains("1.20 faults"), "{why}");
        let zeros = Op::ZeroRead { kind: PageKind::Base };
        assert_eq!(reason(zeros, Ok(vec![taken(100, Some(Backing::new()))])), None);
        assert!(reason(zeros, Ok(vec![taken(100, only(PageKind::Base))])).is_some());
        assert_eq!(
            reason(thp, Err(NotMeasured::Refused("no pool".to_owned()))),
            Some("no pool".to_owned())
        );
    }

    #[test]
    fn a_busy_machine_and_rounds_apart_are_reported() {
        let mut later = taken(100, None);
        later.ticks = vec![300.0; 40];
        let (targets, sampled) = of(Op::Segv, vec![Ok(vec![taken(100, None)]), Ok(vec![later])]);
        let codes = |others| -> Vec<String> {
            let warnings = warnings(&targets, &sampled, Duration::from_secs(1), others);
            warnings.into_iter().map(|warning| warning.code).collect()
        };
        assert_eq!(codes(Some(0.05)), ["rounds-disagree", "short-budget"]);
        assert_eq!(codes(None), codes(Some(0.05)));
        assert_eq!(codes(Some(0.5))[0], "busy-machine");
    }

    #[test]
    fn one_visit_alone_has_a_reason_instead_of_a_number() {
        let (targets, sampled) = of(Op::FileRead, vec![Ok(vec![taken(100, None)])]);
        let point = points(&targets, &sampled, 2.0).remove(0);
        assert!(point.ns.is_none() && point.not_measured.is_some_and(|why| why.contains("one visit")));
    }

    #[test]
    fn visits_that_still_move_are_reported() {
        let mut moving = taken(100, None);
        moving.ticks = (0..40).map(|n| 300.0 - f64::from(n)).collect();
        let (targets, sampled) = of(Op::Segv, vec![Ok(vec![moving]); 6]);
        let warnings = warnings(&targets, &sampled, Duration::from_secs(1), None);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let point = points(&targets, &sampled, 2.0).remove(0);
        let high = point.bound.and_then(|bound| bound.high).expect("a bound");
        assert!(
            point.ns.is_none() && !point.settled && (130.0..150.0).contains(&high),
            "{point:?}"
        );
        assert!(
            warnings[0].code == "not-converged" && warnings[0].text.contains("segv x 2"),
            "{warnings:?}"
        );
    }
}
