//! `hugewise simulate translation`: each machine with each pattern or a trace, and each number of virtual CPUs; every one is a result of its own.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use host::Snapshot;
use model::{Bytes, Envelope, Warning, time_left};
use predict::Replay;
use studies::paging::{Preset, preset};
use translation::Mode;
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{self, Setting, Simulation, Study, StudyError};

use super::super::session::Session;
use super::machine;
use super::trace::Opened;
use crate::cli::args::{Format, Translation};
use crate::show::{sample, show};
use crate::ui::Outcome;

/// Accesses of a pattern that are counted in each case if no number is given.
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

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &Translation) -> anyhow::Result<Outcome> {
    if args.machine == ["list"] {
        session.ui.result(machine::list().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let form = session.form::<Simulation>()?;
    let snapshot = Snapshot::take(&session.source);
    let runs = runs(args);
    if let [run] = runs.as_slice() {
        let result = simulated(session, args, run, &snapshot)?;
        return session.give(&result, form);
    }
    if !matches!(form, Format::Text | Format::Markdown | Format::Json) {
        bail!(
            "--format {}: {} simulations are as many results, expected text, markdown or json (for others give one --machine, --pattern and --vcpus)",
            form.name(),
            runs.len()
        );
    }
    each(session, args, &runs, &snapshot, form)
}

/// Every combination, in the order given.
fn runs(args: &Translation) -> Vec<Run<'_>> {
    let inputs: Vec<Input<'_>> = match (args.preset, &args.trace) {
        (Some(preset), _) => vec![Input::Preset(preset)],
        (None, Some(trace)) => vec![Input::Trace(trace)],
        (None, None) => args.pattern.iter().copied().map(Input::Pattern).collect(),
    };
    let mut runs = Vec::new();
    for machine in or_none(args.machine.iter().map(String::as_str)) {
        for &input in &inputs {
            let vcpus = or_none(args.vcpus.iter().copied());
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
    session: &mut Session<'_>,
    args: &Translation,
    runs: &[Run<'_>],
    snapshot: &Snapshot,
    form: Format,
) -> anyhow::Result<Outcome> {
    let (mut shown, mut warned) = (Vec::new(), Vec::new());
    for (number, run) in runs.iter().enumerate() {
        let result = simulated(session, args, run, snapshot)?;
        for warning in &result.warnings {
            if !warned.contains(warning) {
                session.ui.warning(warning);
                warned.push(warning.clone());
            }
        }
        let mut piece = match form {
            Format::Json => sample(&result, form, number == 0)?,
            _ => show(&result, form, session.ui.look())?,
        };
        if number > 0 && form != Format::Json {
            piece.insert(0, b'\n');
        }
        // A file is replaced whole each time, so that it holds all results so far.
        shown.extend_from_slice(&piece);
        let is_file = session.ui.has_file();
        session.ui.result(if is_file { &shown } else { &piece })?;
        if session.ui.is_gone {
            break;
        }
    }
    Ok(Outcome::Done)
}

fn simulated(
    session: &Session<'_>,
    args: &Translation,
    run: &Run<'_>,
    snapshot: &Snapshot,
) -> anyhow::Result<Envelope<Simulation>> {
    let machine = || machine::named_or_at_hand(run.machine, snapshot);
    let simulation = match run.input {
        Input::Preset(which) => with_progress(session, |progress| {
            preset(which, args.accesses.unwrap_or(ACCESSES), session.seed, progress)
        })?,
        Input::Trace(file) => of_trace(session, args, machine()?, file)?,
        Input::Pattern(pattern) => of_pattern(session, args, machine()?, pattern, run.vcpus)?,
    };
    let warnings = warnings(&simulation, matches!(run.input, Input::Trace(_)));
    Ok(session.about(snapshot, warnings, simulation))
}

fn of_pattern(
    session: &Session<'_>,
    args: &Translation,
    mut machine: Machine,
    pattern: Pattern,
    vcpus: Option<u16>,
) -> anyhow::Result<Simulation> {
    machine.vcpus = vcpus.unwrap_or(machine.vcpus);
    let (settings, baseline) = settings_and_baseline(args, &machine)?;
    let accesses = args.accesses.unwrap_or(ACCESSES);
    let study = Study {
        pattern,
        working_sets: args.working_sets.clone(),
        baseline,
        settings,
        accesses,
        warm_up: args.warm_up.unwrap_or(accesses),
        seed: session.seed,
        machine,
    };
    let mut simulation = with_progress(session, |progress| study::run(&study, progress))?;
    if args.curve {
        simulation.curves = study::curves(&study);
    }
    Ok(simulation)
}

/// A simulation of a whole trace.
fn of_trace(session: &Session<'_>, args: &Translation, machine: Machine, path: &Path) -> anyhow::Result<Simulation> {
    let (settings, baseline) = settings_and_baseline(args, &machine)?;
    let asked = Replay {
        machine,
        settings,
        baseline,
        warm_up: args.warm_up.unwrap_or(0),
        accesses: args.accesses.unwrap_or(u64::MAX),
        forgets: false,
        history: Vec::new(),
        curve: args.curve,
    };
    let mut opened = Opened::open(path, args.trace_format, args.fetches)?;
    let replayed = opened.run(session, &asked)?;
    let name = format!("{} ({})", path.display(), opened.trace.format.name());
    Ok(asked.simulation(name, &replayed)?)
}

/// All of them, and the one that the others are compared with.
fn settings_and_baseline(args: &Translation, machine: &Machine) -> anyhow::Result<(Vec<Setting>, Setting)> {
    let settings = settings(args, machine);
    let baseline = args.baseline.or(settings.first().copied());
    let baseline = baseline.ok_or_else(|| anyhow::anyhow!("{} has no page size that is simulated", machine.id))?;
    Ok((settings, baseline))
}

/// Page sizes that are simulated if none is given: those of x86.
const USUAL: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

/// Every mode with every page size, or with every pair of them. Natively the guest's page counts alone.
fn settings(args: &Translation, machine: &Machine) -> Vec<Setting> {
    let usual = || USUAL.into_iter().filter(|&page| machine.maps(page));
    let pairs: Vec<((Bytes, Option<u8>), Bytes)> = match (&args.guest_pages[..], &args.pages[..]) {
        ([], []) => usual().map(|page| ((page, None), page)).collect(),
        ([], pages) => pages.iter().map(|&pages| (pages, pages.0)).collect(),
        (guests, _) => {
            let hosts = |&guest: &(Bytes, Option<u8>)| args.host_pages.iter().map(move |&host| (guest, host));
            guests.iter().flat_map(hosts).collect()
        }
    };
    let mut settings: Vec<Setting> = Vec::new();
    for mode in modes(args, machine) {
        for &((guest_page, share), host) in &pairs {
            let setting = Setting {
                share,
                ..Setting::new(mode, guest_page, host)
            };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    settings
}

fn modes(args: &Translation, machine: &Machine) -> Vec<Mode> {
    if !args.mode.is_empty() {
        return args.mode.clone();
    }
    let virt = if machine.nested_paging == Some(false) {
        Mode::Shadow
    } else {
        Mode::Nested
    };
    vec![Mode::Native, virt]
}

/// Shows how many of how many cases are done.
fn with_progress(
    session: &Session<'_>,
    simulate: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> Result<Simulation, StudyError>,
) -> anyhow::Result<Simulation> {
    let (shown, begun) = (std::sync::Mutex::new(session.ui.progress()), Instant::now());
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
    let no_tlb = machine::without_tlb(&simulation.machine.id, entries);
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
