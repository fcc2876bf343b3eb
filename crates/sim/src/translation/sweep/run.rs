//! Simulates the points of a sweep on all CPUs, and hands each over as soon as it is done.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::plan::{Input, Plan, Unit};
use super::shard::Shard;
use super::{Parameters, Point};
use crate::translation::engine::Counts;
use crate::translation::machine::Machine;
use crate::translation::study::{Replay, StudyError, count, replay, total, weighed};
use crate::translation::trace::{Trace, TraceError};

/// Why a sweep ended early.
#[derive(Debug)]
pub enum RunError<E> {
    /// A point could not be simulated.
    Point(PointError),
    /// A trace could not be opened, or points not be kept.
    Other(E),
}

/// Why a point could not be simulated.
#[derive(Debug, thiserror::Error)]
#[error("point {point} ({machine}, {input}, {setting}): {source}")]
pub struct PointError {
    /// Its number.
    point: u64,
    /// Its machine.
    machine: String,
    /// Its pattern or trace.
    input: String,
    /// Its setting.
    setting: String,
    /// Why.
    source: Box<StudyError>,
}

/// Simulates the points of a shard, or all, that are not done yet. `open` opens traces, `keep` gets points that share a simulation
/// with how many points are done.
///
/// # Errors
/// Of one of the first points that fail; points that were done before are kept.
pub fn run<R: std::io::Read + Send, E: Send>(
    plan: &Plan,
    shard: Option<Shard>,
    done: &BTreeMap<u64, (Point, String)>,
    threads: usize,
    open: &(dyn Fn(&str) -> Result<R, E> + Sync),
    keep: &(dyn Fn(Vec<Point>) -> Result<(), E> + Sync),
) -> Result<(), RunError<E>> {
    let is_open = |unit: &&Unit| unit.numbers().any(|number| !done.contains_key(&number));
    let units: Vec<&Unit> = plan.units_of(shard).filter(is_open).collect();
    let (next, has_failed, failed) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let work = || {
        while !has_failed.load(Ordering::Relaxed)
            && let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let missing = |point: &Point| !done.contains_key(&point.point);
            let kept = points(plan, unit, open)
                .and_then(|points| keep(points.into_iter().filter(missing).collect()).map_err(RunError::Other));
            if let Err(error) = kept {
                has_failed.store(true, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
    };
    let threads = threads.clamp(1, units.len().max(1));
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}

/// All points of a unit: one simulation, weighed with each of their parameters.
fn points<R: std::io::Read + Send, E>(
    plan: &Plan,
    unit: &Unit,
    open: &(dyn Fn(&str) -> Result<R, E> + Sync),
) -> Result<Vec<Point>, RunError<E>> {
    let structure = unit.points.first().copied().unwrap_or_default();
    let own = &plan.machines[unit.machine];
    let input = &plan.inputs[unit.input];
    let fail = |source: StudyError| {
        RunError::Point(PointError {
            point: unit.first,
            machine: plan.sweep.machines[unit.machine].value.clone(),
            input: input.name().to_owned(),
            setting: unit.setting.to_string(),
            source: Box::new(source),
        })
    };
    // The plan holds only what the machine can do.
    let machine = structure.applied(own).unwrap_or_else(|| own.clone());
    let counts = match input {
        Input::Pattern(pattern) => {
            let size = unit.working_set.unwrap_or_default();
            let vcpus = machine.surroundings.vcpus();
            let mut accesses = pattern.threads(size, plan.head.seed, vcpus);
            let counted = count(
                &machine,
                unit.setting,
                &mut accesses,
                plan.sweep.warm_up,
                plan.sweep.accesses,
            );
            counted.map_err(|why| fail(why.into()))?
        }
        Input::Trace(name) => {
            let file = open(name).map_err(RunError::Other)?;
            of_trace(&machine, unit, file).map_err(fail)?
        }
    };
    let point = |(number, &parameters): (u64, &Parameters)| {
        let machine = parameters.applied(own).unwrap_or_else(|| own.clone());
        point(plan, unit, &machine, number, parameters, &counts)
    };
    Ok(unit.numbers().zip(&unit.points).map(point).collect())
}

/// The counts of a whole trace.
fn of_trace(machine: &Machine, unit: &Unit, file: impl std::io::Read + Send) -> Result<Counts, StudyError> {
    let mut trace = Trace::open(file, None, false).map_err(|why: TraceError| StudyError::from(why))?;
    let asked = Replay {
        machine: machine.clone(),
        settings: vec![unit.setting],
        baseline: unit.setting,
        warm_up: 0,
        accesses: u64::MAX,
        forgets: false,
        history: Vec::new(),
        curve: false,
    };
    let replayed = replay(&asked, &mut trace, &|_| {})?;
    Ok(replayed.whole().kept.swap_remove(0).counts)
}

fn point(plan: &Plan, unit: &Unit, machine: &Machine, number: u64, parameters: Parameters, counts: &Counts) -> Point {
    let case = weighed(machine, unit.working_set, unit.setting, counts, (counts, unit.setting));
    Point {
        point: number,
        seed: plan.head.seed,
        machine: plan.sweep.machines[unit.machine].value.clone(),
        input: plan.inputs[unit.input].name().to_owned(),
        working_set: case.working_set,
        setting: case.setting,
        parameters,
        accesses: case.accesses,
        warm_up: unit.working_set.map_or(0, |_| plan.sweep.warm_up),
        entry: case.entry,
        reach: case.reach,
        miss_rates: case.miss_rates,
        references_per_walk: case.references_per_walk,
        references: case.references,
        exits: case.exits,
        shootdowns: case.shootdowns,
        cycles: case.cycles,
        total: total(machine, unit.setting.mode, counts),
    }
}
