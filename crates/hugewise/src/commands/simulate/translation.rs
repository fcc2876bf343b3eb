//! `hugewise simulate translation`: each machine with each pattern or a trace, and each number of virtual CPUs; every one is a result of its own.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use host::Snapshot;
use model::{Envelope, Warning, time_left};
use studies::paging::{Preset, preset};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{self, Simulation, Study, StudyError};

use super::super::desk::Desk;
use super::settings::settings_and_baseline;
use super::{machine, no_tlb, table, trace};
use crate::cli::typed::{Format, Translation};
use crate::show::{sample, show};
use crate::ui::Outcome;

/// Accesses of a pattern that are counted in each case if no number is typed.
const ACCESSES: u64 = 1_000_000;

/// What is simulated: one result.
struct Run<'a> {
    machine: Option<&'a str>,
    input: Input<'a>,
    vcpus: Option<u16>,
}

#[derive(Clone, Copy)]
enum Input<'a> {
    Preset(Preset),
    Trace(&'a Path),
    Pattern(Pattern),
}

pub(super) fn run(desk: &mut Desk<'_>, typed: &Translation) -> anyhow::Result<Outcome> {
    if typed.machine == ["list"] {
        desk.ui.result(table::list().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let form = desk.form::<Simulation>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let runs = runs(typed);
    if let [run] = runs.as_slice() {
        let Some(result) = simulated(desk, typed, run, &snapshot)? else {
            return Ok(Outcome::Interrupted);
        };
        return desk.give(&result, form);
    }
    if !matches!(form, Format::Text | Format::Markdown | Format::Json) {
        bail!(
            "--format {}: {} simulations are as many results, expected text, markdown or json (for others give one --machine, --pattern and --vcpus)",
            form.name(),
            runs.len()
        );
    }
    each(desk, typed, &runs, &snapshot, form)
}

/// Every combination, in the order typed.
fn runs(typed: &Translation) -> Vec<Run<'_>> {
    let inputs: Vec<Input<'_>> = match (typed.preset, &typed.trace) {
        (Some(preset), _) => vec![Input::Preset(preset)],
        (None, Some(trace)) => vec![Input::Trace(trace)],
        (None, None) => typed.pattern.iter().copied().map(Input::Pattern).collect(),
    };
    let mut runs = Vec::new();
    for machine in or_none(typed.machine.iter().map(String::as_str)) {
        for &input in &inputs {
            let vcpus = or_none(typed.vcpus.iter().copied());
            runs.extend(vcpus.into_iter().map(|vcpus| Run { machine, input, vcpus }));
        }
    }
    runs
}

/// All values, or one that is none.
fn or_none<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let all: Vec<Option<T>> = values.map(Some).collect();
    if all.is_empty() { vec![None] } else { all }
}

/// Simulates one after the other, and shows each as soon as it is done.
fn each(
    desk: &mut Desk<'_>,
    typed: &Translation,
    runs: &[Run<'_>],
    snapshot: &Snapshot,
    form: Format,
) -> anyhow::Result<Outcome> {
    let (mut shown, mut warned) = (Vec::new(), Vec::new());
    for (number, run) in runs.iter().enumerate() {
        let Some(result) = simulated(desk, typed, run, snapshot)? else {
            return Ok(Outcome::Interrupted);
        };
        for warning in &result.warnings {
            if !warned.contains(warning) {
                desk.ui.warning(warning);
                warned.push(warning.clone());
            }
        }
        let mut piece = match form {
            Format::Json => sample(&result, form, number == 0)?,
            _ => show(&result, form, desk.ui.look())?,
        };
        if number > 0 && form != Format::Json {
            piece.insert(0, b'\n');
        }
        // A file is replaced whole each time, so that it holds all results so far.
        shown.extend_from_slice(&piece);
        let is_file = desk.ui.has_file();
        desk.ui.result(if is_file { &shown } else { &piece })?;
        if desk.ui.is_gone() {
            break;
        }
    }
    Ok(Outcome::Done)
}

/// One result; `None` if the user stopped measuring this machine.
fn simulated(
    desk: &Desk<'_>,
    typed: &Translation,
    run: &Run<'_>,
    snapshot: &Snapshot,
) -> anyhow::Result<Option<Envelope<Simulation>>> {
    let machine = || machine::asked(desk, run.machine, &typed.measured, snapshot);
    let simulation = match run.input {
        Input::Preset(which) => with_progress(desk, |progress| {
            preset(which, typed.accesses.unwrap_or(ACCESSES), desk.seed, progress)
        })?,
        Input::Trace(file) => match machine()? {
            Some(machine) => trace::simulated(desk, typed, machine, file)?,
            None => return Ok(None),
        },
        Input::Pattern(pattern) => match machine()? {
            Some(machine) => of_pattern(desk, typed, machine, pattern, run.vcpus)?,
            None => return Ok(None),
        },
    };
    let warnings = warnings(&simulation, matches!(run.input, Input::Trace(_)));
    Ok(Some(desk.about(snapshot, warnings, simulation)))
}

fn of_pattern(
    desk: &Desk<'_>,
    typed: &Translation,
    mut machine: Machine,
    pattern: Pattern,
    vcpus: Option<u16>,
) -> anyhow::Result<Simulation> {
    machine.surroundings.vcpus = vcpus.or(machine.surroundings.vcpus);
    let (settings, baseline) = settings_and_baseline(typed, &machine)?;
    let accesses = typed.accesses.unwrap_or(ACCESSES);
    let study = Study {
        pattern,
        working_sets: typed.working_sets.clone(),
        baseline,
        settings,
        accesses,
        warm_up: typed.warm_up.unwrap_or(accesses),
        seed: desk.seed,
        machine,
    };
    let mut simulation = with_progress(desk, |progress| study::run(&study, progress))?;
    if typed.curve {
        simulation.curves = study::curves(&study)?;
    }
    Ok(simulation)
}

/// Shows how many of how many cases are done.
fn with_progress(
    desk: &Desk<'_>,
    simulate: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> Result<Simulation, StudyError>,
) -> anyhow::Result<Simulation> {
    let (shown, begun) = (std::sync::Mutex::new(desk.ui.progress()), Instant::now());
    let simulated = simulate(&|done, of| {
        let done = done as f64 / of as f64;
        if let Ok(progress) = shown.lock() {
            progress.show(done, time_left(begun.elapsed(), done), "simulating");
        }
    });
    Ok(simulated?)
}

/// What a reader has to know before believing the cycles.
fn warnings(simulation: &Simulation, is_trace: bool) -> Vec<Warning> {
    let entries = simulation.cases.iter().map(|case| (case.entry, case.reach));
    let no_tlb = no_tlb::warning(&simulation.machine.id, entries);
    let overlapping = match is_trace {
        true => Some(
            "accesses of a trace overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates)",
        ),
        false => (!simulation.is_dependent).then_some(
            "accesses of this pattern overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates, or use --pattern chase)",
        ),
    };
    let overlapping = overlapping.map(|text| Warning::new("no-overlap", text));
    no_tlb.into_iter().chain(overlapping).collect()
}
