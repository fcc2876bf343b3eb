//! `hugewise compare --live PID`: a process that runs already is compared with itself, its pages flipped in place.

use host::Snapshot;
use lab::compare::Spec;
use lab::compare::inplace::{self, Finished, Whose};
use lab::compare::metric::Asked;
use model::compare::Method;

use super::inplace::InPlace;
use super::journal::Journal;
use super::{Desk, Stop, give, spec, wall};
use crate::cli::typed::{self, Format};
use crate::ui::{Outcome, Ui};

/// Runs the command.
pub(super) fn run(
    desk: &mut Desk<'_>,
    typed: &typed::Compare,
    pid: u32,
    snapshot: &Snapshot,
    form: Format,
) -> anyhow::Result<Outcome> {
    let asked = asked(typed)?;
    let in_place = InPlace::new(typed, Whose::Found, &asked, typed.load.as_deref(), snapshot)?;
    let stop = Stop::on_signals()?;
    let stopped = || stop.is_asked();
    let mut process = in_place.open(pid, &stopped)?;
    let identity = identity(desk, pid, process.started());
    let mut journal = Journal::open(typed, desk.seed, identity, in_place.names(), Method::Flip)?;
    desk.seed = journal.seed();
    let reason =
        "a process that runs already can be compared in place: no restart, the same data at the same addresses";
    let spec = Spec {
        program: words(desk, pid),
        reason: reason.to_owned(),
        ..spec(typed, &asked, desk.seed)
    };
    let spec = in_place.spec(pid, spec);
    let done = journal.take_done(&spec);
    let mut progress = desk.ui.progress();
    let finished = inplace::run(&spec, done, in_place.plan(), &mut process, &mut journal, &mut progress);
    drop(progress);
    tell(&desk.ui, pid, &finished);
    give(desk, typed, snapshot, form, journal, finished.compared)
}

/// How the process was left, where no result will say so.
fn tell(ui: &Ui, pid: u32, finished: &Finished) {
    match &finished.restored {
        None => ui.say(&format!("process {pid} has ended by itself")),
        Some(Ok(restored)) if finished.compared.is_err() => {
            let (before, wrong) = (&restored.before, restored.wrong);
            ui.say(&format!(
                "process {pid} has the pages back that it had: {before}; {wrong} pieces are not as they were"
            ));
        }
        Some(Ok(_)) => {}
        Some(Err(error)) => ui.say(&format!(
            "process {pid} did not get the pages back that it had: {error}"
        )),
    }
}

fn asked(typed: &typed::Compare) -> anyhow::Result<Vec<Asked>> {
    if typed.metric.is_empty() && typed.load.is_some() {
        return Ok(vec![wall()?]);
    }
    Ok(typed.metric.clone())
}

/// The program and its arguments, as the process shows them.
fn words(desk: &Desk<'_>, pid: u32) -> Vec<String> {
    let bytes = desk.source.bytes(&format!("/proc/{pid}/cmdline"));
    let bytes = bytes.known().map(Vec::as_slice).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Slices of one process cannot be joined to those of another: its id and begin stand in front of its words.
fn identity(desk: &Desk<'_>, pid: u32, started: Option<u64>) -> Vec<String> {
    let started = started.map_or_else(|| "?".to_owned(), |ticks| ticks.to_string());
    let mut all = vec![format!("process {pid} begun {started} ticks after boot")];
    all.extend(words(desk, pid));
    all
}
