//! `hugewise simulate`: other machines and other settings, on paper.

mod captured;
pub(super) mod here;
mod host_memory;
pub(super) mod machine;
pub(super) mod no_tlb;
mod overlap;
mod points;
mod scheduler;
mod settings;
mod sweep;
pub(super) mod trace;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use host::Snapshot;
use model::{Warning, time_left};
use sim::translation::machine::Machine;
use sim::translation::study::preset::preset;
use sim::translation::study::{self, Simulation, Study, StudyError};

use self::settings::settings_and_baseline;
use super::desk::Desk;
use crate::cli::typed::{Format, Simulate, Translation};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &Simulate) -> anyhow::Result<Outcome> {
    match typed {
        Simulate::Translation(typed) => translation(desk, typed),
        Simulate::Sweep(typed) => sweep::run(desk, typed),
        Simulate::Scheduler(typed) => scheduler::run(desk, typed),
        Simulate::Host(typed) => host_memory::run(desk, typed),
    }
}

fn translation(desk: &mut Desk<'_>, typed: &Translation) -> anyhow::Result<Outcome> {
    if typed.machine.as_deref() == Some("list") {
        desk.ui.result(machine::list().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let form = desk.form::<Simulation>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let simulation = match (typed.preset, &typed.trace) {
        (Some(which), _) => with_progress(desk, |progress| {
            preset(which, typed.accesses.unwrap_or(ACCESSES), desk.seed, progress)
        })?,
        (None, file) => {
            let Some(machine) = asked_machine(desk, typed.machine.as_deref(), &typed.measured, &snapshot)? else {
                return Ok(Outcome::Interrupted);
            };
            match file {
                Some(file) => trace::simulated(desk, typed, machine, file)?,
                None => of_pattern(desk, typed, machine)?,
            }
        }
    };
    let warnings = warnings(&simulation, typed.trace.is_some());
    let result = desk.about(&snapshot, warnings, simulation);
    desk.give(&result, form)
}

/// The machine as typed; `here` is this one as measured. `None` if the user stopped measuring it.
pub(super) fn asked_machine(
    desk: &Desk<'_>,
    typed: Option<&str>,
    measured: &[PathBuf],
    snapshot: &Snapshot,
) -> anyhow::Result<Option<Machine>> {
    match typed {
        Some("here") => here::measured(desk, measured, snapshot),
        _ if !measured.is_empty() => bail!("--measured: it is for --machine here"),
        typed => machine::typed(typed, snapshot).map(Some),
    }
}

fn of_pattern(desk: &Desk<'_>, typed: &Translation, machine: Machine) -> anyhow::Result<Simulation> {
    let study = typed_study(typed, machine, desk.seed)?;
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

fn typed_study(typed: &Translation, mut machine: Machine, seed: u64) -> anyhow::Result<Study> {
    machine.surroundings.vcpus = typed.vcpus.or(machine.surroundings.vcpus);
    let (settings, baseline) = settings_and_baseline(typed, &machine)?;
    let accesses = typed.accesses.unwrap_or(ACCESSES);
    Ok(Study {
        pattern: typed.pattern,
        working_sets: typed.working_sets.clone(),
        baseline,
        settings,
        accesses,
        warm_up: typed.warm_up.unwrap_or(accesses),
        seed,
        machine,
    })
}

/// Accesses of a pattern that are counted in each case if no number is typed.
const ACCESSES: u64 = 1_000_000;

/// What a reader has to know before believing the cycles.
fn warnings(simulation: &Simulation, is_trace: bool) -> Vec<Warning> {
    let entries = simulation.cases.iter().map(|case| (case.entry, case.reach));
    let no_tlb = no_tlb::warning(&simulation.machine.id, entries);
    if is_trace {
        return no_tlb
            .into_iter()
            .chain([overlap::warning("accesses of a trace")])
            .collect();
    }
    let independent = (!simulation.is_dependent).then(|| {
        let text = "accesses of this pattern overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates, or use --pattern chase)";
        Warning::new("no-overlap", text)
    });
    no_tlb.into_iter().chain(independent).collect()
}
