//! `hugewise simulate`: other machines and other settings, on paper.

mod captured;
pub(super) mod here;
mod host_memory;
pub(super) mod machine;
mod points;
mod scheduler;
mod sweep;
pub(super) mod trace;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use host::Snapshot;
use model::{Bytes, Warning, time_left};
use sim::translation::Mode;
use sim::translation::machine::Machine;
use sim::translation::study::preset::preset;
use sim::translation::study::{self, Setting, Simulation, Study, StudyError};

use super::Desk;
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
    with_progress(desk, |progress| study::run(&study, progress))
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

fn settings_and_baseline(typed: &Translation, machine: &Machine) -> anyhow::Result<(Vec<Setting>, Setting)> {
    let settings = settings(typed, machine);
    let baseline = typed.baseline.or(settings.first().copied());
    let baseline = baseline.ok_or_else(|| anyhow::anyhow!("{} has no page size that is simulated", machine.id))?;
    Ok((settings, baseline))
}

/// Page sizes that are simulated if none is typed: those of x86.
const USUAL: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

/// Every mode with every page size, or with every pair of them. Natively the guest's page counts alone.
fn settings(typed: &Translation, machine: &Machine) -> Vec<Setting> {
    let usual = || USUAL.into_iter().filter(|&page| machine.maps(page));
    let pairs: Vec<(Bytes, Bytes)> = match (&typed.guest_pages[..], &typed.pages[..]) {
        ([], []) => usual().map(|page| (page, page)).collect(),
        ([], pages) => pages.iter().map(|&page| (page, page)).collect(),
        (guests, _) => {
            let hosts = |&guest: &Bytes| typed.host_pages.iter().map(move |&host| (guest, host));
            guests.iter().flat_map(hosts).collect()
        }
    };
    let mut settings: Vec<Setting> = Vec::new();
    for mode in modes(typed, machine) {
        for &(guest_page, host) in &pairs {
            let setting = Setting::new(mode, guest_page, host);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    settings
}

fn modes(typed: &Translation, machine: &Machine) -> Vec<Mode> {
    if !typed.mode.is_empty() {
        return typed.mode.clone();
    }
    let virt = if machine.nested_paging == Some(false) {
        Mode::Shadow
    } else {
        Mode::Nested
    };
    vec![Mode::Native, virt]
}

/// What a reader has to know before believing the cycles.
fn warnings(simulation: &Simulation, is_trace: bool) -> Vec<Warning> {
    if is_trace {
        return vec![no_overlap("accesses of a trace")];
    }
    let independent = (!simulation.is_dependent).then(|| {
        let text = "accesses of this pattern overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates, or use --pattern chase)";
        Warning::new("no-overlap", text)
    });
    independent.into_iter().collect()
}

fn no_overlap(which: &str) -> Warning {
    let text =
        format!("{which} overlap on a real CPU, and here nothing does: cycles are an upper bound (compare miss rates)");
    Warning::new("no-overlap", text)
}
