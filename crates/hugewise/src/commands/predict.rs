//! `hugewise predict`: what huge pages would save a program, here or on another machine.

mod calibrate;

use std::path::Path;

use anyhow::{Context, bail};
use compare::RunLog;
use host::Snapshot;
use model::{Bytes, Warning};
use predict::trace::Trace;
use predict::trace::own::write;
use predict::{Calibration, Observed, Prediction, Replay, history, settings, settings_beside};
use translation::machine::Machine;
use translation::study::Setting;

use self::calibrate::Prepared;
use super::compare::around::Around;
use super::compare::store::Store;
use super::session::Session;
use super::simulate::machine;
use super::simulate::trace::Opened;
use super::tlb;
use super::trace::{Recorded, record};
use crate::cli::args::Predict;
use crate::render::predict::prediction::captured_in;
use crate::stop;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Predict) -> anyhow::Result<Outcome> {
    if args.machine.as_deref() == Some("list") {
        session.ui.result(machine::list().as_bytes())?;
        return Ok(Outcome::Done);
    }
    if args.trace.is_none() && args.command.is_empty() {
        bail!("nothing to predict: give a program with its arguments after `--`, or --trace FILE");
    }
    let named = args.machine.as_deref();
    if args.calibrate.is_some() && !machine::is_here(named) && !named.is_some_and(machine::is_file) {
        bail!(
            "--calibrate runs the program on this machine: leave --machine out, or describe this machine in a FILE.toml"
        );
    }
    let form = session.form::<Prediction>()?;
    let snapshot = Snapshot::take(&session.source);
    let machine = machine::named_or_at_hand(named, &snapshot)?;
    suits(&machine).with_context(|| format!("--machine {}", named.unwrap_or("here")))?;
    let mut warnings = Vec::new();
    let (prediction, reaches) = match &args.trace {
        Some(path) => of_trace(session, args, path, &mut asked(machine, args.warm_up), &mut warnings)?,
        None => of_program(session, args, &snapshot, machine, &mut warnings)?,
    };
    let is_guest = machine::is_here(named) && prediction.calibration.is_none() && tlb::is_in_vm(&snapshot);
    warnings.extend(is_guest.then(in_a_guest));
    warnings.extend(prediction.calibration.as_ref().and_then(unexplained));
    warnings.extend((prediction.windows == 1).then(one_window));
    warnings.extend(machine::without_tlb(&prediction.machine.id, reaches.into_iter()));
    session.give_about(&snapshot, warnings, prediction, form)
}

/// A prediction, and what the TLBs of its machine reach with the entries of each setting.
type Made = (Prediction, Vec<(Bytes, Bytes)>);

fn of_trace(
    session: &Session<'_>,
    args: &Predict,
    path: &Path,
    asked: &mut Replay,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Made> {
    match Opened::history(path, args.trace_format, &asked.machine)? {
        Some(history) => asked.history = history,
        None => warnings.push(read_once()),
    }
    let mut opened = Opened::open(path, args.trace_format, false)?;
    asked.lay_pages(opened.trace.head.as_ref());
    let replayed = opened.run(session, asked)?;
    let name = format!("{} ({})", path.display(), opened.trace.format.name());
    let prediction = asked.prediction(name, opened.trace.head.clone(), &replayed, None);
    Ok((prediction, reaches(asked)))
}

fn of_program(
    session: &Session<'_>,
    args: &Predict,
    snapshot: &Snapshot,
    machine: Machine,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Made> {
    session.must_be_live("tracing a program")?;
    session.say_unread_input();
    let (recorded, runs) = run_program(session, args, snapshot, &machine, warnings)?;
    let beside = runs
        .as_ref()
        .map_or_else(Vec::new, |(base, _)| settings_beside(&machine, *base));
    let mut asked = asked(machine, 0);
    asked.settings.extend(beside);
    stop::on_signals()?;
    // From here on nothing is left to put back.
    let prediction = stop::while_reading(|| replayed(&mut asked, recorded, runs))?;
    Ok((prediction, reaches(&asked)))
}

/// Runs here, against base pages in that setting.
type Calibrated = Option<(Setting, Vec<Observed>)>;

/// The trace of a program, and its runs on several kinds of pages if they are asked for; what can be refused is, before either.
fn run_program(
    session: &Session<'_>,
    args: &Predict,
    snapshot: &Snapshot,
    machine: &Machine,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<(Recorded, Calibrated)> {
    let trace = || {
        let recorded = record(&args.command, args.budget, args.window, args.ignore_failure)?;
        session.ui.note(&captured_in(&recorded.windows, recorded.cpu));
        Ok::<_, anyhow::Error>(recorded)
    };
    let Some(time) = args.calibrate else {
        return Ok((trace()?, None));
    };
    let request = calibrate::request(session, snapshot, args, time)?;
    let (around, mut store) = (Around::new(&session.ui), Store::nowhere());
    let mut log = RunLog::new(&mut store);
    let prepared = Prepared::of(&request, snapshot, &around, &mut log)?;
    let base = calibrate::base(session, snapshot, machine, warnings)?;
    let recorded = trace()?;
    let observed = match prepared.too_short(recorded.cpu) {
        Some(why) => Err(why),
        None => prepared.made(&mut log, warnings)?,
    };
    match observed {
        Ok(observed) => {
            warnings.extend(calibrate::mixed(snapshot).err().map(no_mix));
            Ok((recorded, Some((base, observed))))
        }
        Err(why) => {
            let text = format!("{why}: the prediction is without runs");
            warnings.push(Warning::new("not-calibrated", text));
            Ok((recorded, None))
        }
    }
}

fn replayed(asked: &mut Replay, recorded: Recorded, runs: Calibrated) -> anyhow::Result<Prediction> {
    let mut bytes = Vec::new();
    write(&recorded.head, &recorded.windows, &mut bytes)?;
    let open = || Trace::open(&bytes[..], None, false);
    asked.history = history(&mut open()?, &asked.machine)?;
    asked.lay_pages(Some(&recorded.head));
    let mut trace = open()?;
    let replayed = predict::replay(asked, &mut trace, &|_| {})?;
    let name = recorded.head.command.join(" ");
    Ok(asked.prediction(name, Some(recorded.head), &replayed, runs))
}

/// A prediction is against base pages, for one CPU.
fn suits(machine: &Machine) -> anyhow::Result<()> {
    if machine.vcpus > 1 {
        bail!("vcpus: a trace runs on one virtual CPU (leave vcpus out, or simulate a pattern)");
    }
    let pages = [Bytes::kib(4), Bytes::mib(2)];
    match pages.into_iter().find(|&page| !machine.maps(page)) {
        None => Ok(()),
        Some(page) => bail!(
            "page_sizes: pages of {} are missing, and predictions are about those of 4K and 2M",
            page.exact()
        ),
    }
}

fn reaches(asked: &Replay) -> Vec<(Bytes, Bytes)> {
    let entries = asked.settings.iter().map(|setting| setting.entry());
    entries.map(|entry| (entry, asked.machine.reach(entry))).collect()
}

fn no_mix(why: &str) -> Warning {
    let text = format!(
        "no run had half of its memory on huge pages ({why}): what a share on huge pages saves is less certain"
    );
    Warning::new("no-mix", text)
}

/// What the program saved that is not in its waits.
fn unexplained(calibration: &Calibration) -> Option<Warning> {
    (calibration.unexplained > 0.005).then(|| {
        let text = format!(
            "its runs lie {:.1} points from what its waits for pages explain, and their noise does not: something else changes with the pages, and rows of pages \
             that it did not run on do not show it",
            100.0 * calibration.unexplained
        );
        Warning::new("not-by-waits", text)
    })
}

/// Which rows a comparison in this virtual machine measures.
fn in_a_guest() -> Warning {
    let text = "this machine is a virtual machine: of these rows `hugewise compare --arms base,thp` measures nested ones (shadow ones without EPT or NPT) \
                with the host's page size, which `hugewise measure tlb` finds: nested:2M/4K if it is 4K";
    Warning::new("virtual-machine", text)
}

fn one_window() -> Warning {
    let text = "the trace has one window: how far others differ from it is not known, and is not in the ranges (trace a longer run)";
    Warning::new("one-window", text)
}

fn read_once() -> Warning {
    let text = "a pipe is read once, so caches held nothing of what the program does between windows: savings may come out too large (write the trace to a file)";
    Warning::new("no-history", text)
}

fn asked(machine: Machine, warm_up: u64) -> Replay {
    let settings = settings(&machine);
    Replay {
        baseline: settings[0],
        settings,
        machine: Machine {
            fetches_ahead: true,
            ..machine
        },
        warm_up,
        accesses: u64::MAX,
        forgets: true,
        history: Vec::new(),
        curve: false,
    }
}
