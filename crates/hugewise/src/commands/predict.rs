//! `hugewise predict`: what huge pages would save a program, here or on another machine.

use anyhow::bail;
use host::Snapshot;
use model::Warning;
use predict::trace::Trace;
use predict::trace::own::write;
use predict::{Prediction, settings};
use predict::{Replay, history};
use translation::machine::Machine;

use super::session::Session;
use super::simulate::machine;
use super::simulate::trace::Opened;
use super::trace::record;
use crate::cli::args::{Format, Predict};
use crate::render::predict::prediction::captured_in;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Predict) -> anyhow::Result<Outcome> {
    if args.machine.as_deref() == Some("list") {
        session.ui.result(machine::list().as_bytes())?;
        return Ok(Outcome::Done);
    }
    if args.trace.is_none() && args.command.is_empty() {
        bail!("nothing to predict: give a program with its arguments after `--`, or --trace FILE");
    }
    let form = session.form::<Prediction>(Format::Text)?;
    let snapshot = Snapshot::take(&session.source);
    if args.machine.as_deref() == Some("here") {
        bail!(
            "--machine here: predict takes no measured machine; leave --machine out \
             for this machine's CPU by the table, or name another CPU or a FILE.toml (`--machine list` lists the table)"
        );
    }
    let machine = machine::named_or_at_hand(args.machine.as_deref(), &snapshot)?;
    let (mut asked, mut warnings) = (asked(machine, args.warm_up), Vec::new());
    let prediction = match &args.trace {
        Some(path) => {
            match Opened::history(path, args.trace_format, &asked.machine)? {
                Some(history) => asked.history = history,
                None => warnings.push(read_once()),
            }
            let mut opened = Opened::open(path, args.trace_format, false)?;
            asked.lay_pages(opened.trace.head());
            let replayed = opened.run(session, &asked)?;
            let name = format!("{} ({})", path.display(), opened.trace.format().name());
            asked.prediction(name, opened.trace.head().cloned(), &replayed)
        }
        None => {
            session.must_be_live("tracing a program")?;
            let Some(recorded) = record(&args.command, args.budget, args.window, args.ignore_failure)? else {
                return Ok(Outcome::Interrupted);
            };
            session.ui.note(&captured_in(&recorded.windows, recorded.cpu));
            let mut bytes = Vec::new();
            write(&recorded.head, &recorded.windows, &mut bytes)?;
            let open = || Trace::open(&bytes[..], None, false);
            asked.history = history(&mut open()?, &asked.machine)?;
            asked.lay_pages(Some(&recorded.head));
            let mut trace = open()?;
            let replayed = predict::replay(&asked, &mut trace, &|_| {})?;
            let name = recorded.head.command.join(" ");
            asked.prediction(name, Some(recorded.head), &replayed)
        }
    };
    let is_guest = args.machine.is_none() && snapshot.cpu.hypervisor.known().is_some();
    warnings.extend(is_guest.then(in_a_guest));
    warnings.extend((prediction.windows == 1).then(one_window));
    let entries = asked.settings.iter().map(|setting| setting.backing().entry());
    let reach = |entry| (entry, asked.machine.reach(entry));
    warnings.extend(machine::without_tlb(&asked.machine.id, entries.map(reach)));
    let result = session.about(&snapshot, warnings, prediction);
    session.give(&result, form)
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
