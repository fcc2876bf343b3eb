//! `hugewise compare --live PID`: a process that runs already is compared with itself, its pages flipped in place.

use compare::Spec;
use compare::inplace::{self, Finished, Whose};
use compare::metric::Asked;
use host::Snapshot;
use model::compare::Method;

use super::inplace::InPlace;
use super::journal::Journal;
use super::{Desk, Stop, give, head, spec, wall};
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
    let head = head(desk.seed, identity, in_place.names(), &asked, Method::Flip);
    let mut journal = Journal::open(typed, head)?;
    desk.seed = journal.seed();
    let reason =
        "a process that runs already can be compared in place: no restart, the same data at the same addresses";
    let spec = Spec {
        program: words(desk, pid),
        reason: reason.to_owned(),
        looked: journal.looked().to_vec(),
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
            ui.say(&match wrong {
                0 => format!("process {pid} has the pages back that it had: {before}"),
                _ => format!(
                    "{wrong} pieces of process {pid} are not on the pages that they had; at first it had {before}"
                ),
            });
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
    // Not known, it is another at each session.
    let started = started.map_or_else(|| format!("? (seed {})", desk.seed), |ticks| ticks.to_string());
    let mut all = vec![format!("process {pid} begun {started} ticks after boot")];
    all.extend(words(desk, pid));
    all
}
