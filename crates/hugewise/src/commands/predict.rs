//! `hugewise predict`: what huge pages would save a program, here or on another machine.

use host::Snapshot;
use model::Warning;
use predict::trace::Trace;
use predict::trace::own::write;
use predict::{Prediction, settings};
use predict::{Replay, history};
use translation::machine::Machine;

use super::session::Session;
use super::simulate::machine;
use super::simulate::no_tlb;
use super::simulate::trace::Opened;
use super::trace::record;
use crate::cli::args::{Format, Predict};
use crate::render::predict::prediction::captured_in;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Predict) -> anyhow::Result<Outcome> {
    let form = session.form::<Prediction>(Format::Text)?;
    let snapshot = Snapshot::take(&session.source);
    let Some(machine) = machine::asked(session, args.machine.as_deref(), &args.measured, &snapshot)? else {
        return Ok(Outcome::Interrupted);
    };
    let mut asked = asked(machine, args.warm_up);
    let mut warnings = Vec::new();
    let prediction = match &args.trace {
        Some(path) => {
            match Opened::history(path, args.trace_format, &asked.machine)? {
                Some(history) => asked.history = history,
                None => warnings.push(read_once()),
            }
            let mut opened = Opened::open(path, args.trace_format, false)?;
            let replayed = opened.run(session, &asked)?;
            let name = format!("{} ({})", path.display(), opened.trace.format().name());
            asked.prediction(name, opened.trace.head().cloned(), &replayed)
        }
        None => {
            session.must_be_live("tracing a program")?;
            let Some(recorded) = record(&args.command, args.budget, args.window)? else {
                return Ok(Outcome::Interrupted);
            };
            session.ui.note(&captured_in(&recorded.windows, recorded.cpu));
            let mut bytes = Vec::new();
            write(&recorded.head, &recorded.windows, &mut bytes)?;
            let open = || Trace::open(&bytes[..], None, false);
            asked.history = history(&mut open()?, &asked.machine)?;
            let mut trace = open()?;
            let replayed = predict::replay(&asked, &mut trace, &|_| {})?;
            let name = recorded.head.command.join(" ");
            asked.prediction(name, Some(recorded.head), &replayed)
        }
    };
    let is_here =
        args.machine.as_deref().is_none_or(|machine| machine == "here") && snapshot.cpu.hypervisor.known().is_some();
    warnings.extend(is_here.then(in_a_guest));
    let entries = asked.settings.iter().map(|setting| setting.backing().entry());
    let reach = |entry| (entry, asked.machine.reach(entry));
    warnings.extend(no_tlb::warning(&asked.machine.id, entries.map(reach)));
    let result = session.about(&snapshot, warnings, prediction);
    session.give(&result, form)
}

fn in_a_guest() -> Warning {
    let text = "this machine is a virtual machine: of these rows `hugewise compare` measures nested or shadow ones here, with the host's page size (hugewise measure tlb)";
    Warning::new("virtual-machine", text)
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
