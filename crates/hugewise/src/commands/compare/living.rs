//! `hugewise compare --live PID`: a process that runs already is compared with itself, its pages flipped in place.

use std::time::Duration;

use anyhow::{Context, bail};
use host::Snapshot;
use lab::compare::inplace::{self, Finished, Length, Plan, Process, SETTLE};
use lab::compare::metric::Asked;
use lab::compare::{Named, Spec};
use lab::flip::{self, Span, To};
use model::PageKind;
use model::compare::{InPlace, Method};

use super::journal::Journal;
use super::{Desk, Stop, give, spec, wall};
use crate::cli::typed::{self, Format};
use crate::ui::{Outcome, Ui};

/// Long enough for a thousand timer ticks, short enough that drift stays out of a block.
const SLICE: Duration = Duration::from_secs(2);
/// A piece of which less is in use stays on base pages: collapsing would make memory of the rest, as in `hugewise collapse`.
const USED: f64 = 0.5;

/// Runs the command.
pub(super) fn run(
    desk: &mut Desk<'_>,
    typed: &typed::Compare,
    pid: u32,
    snapshot: &Snapshot,
    form: Format,
) -> anyhow::Result<Outcome> {
    if typed.range == Span::Text {
        bail!(
            "--range text: code belongs to files, whose large pages cannot be cut in place (write anon, heap or addresses)"
        );
    }
    let arms = arms(&typed.arms)?;
    let asked = asked(typed)?;
    let turns = arms.iter().map(|(to, _)| *to).collect();
    let plan = Plan::new(turns, asked.clone(), length(typed))?;
    let stop = Stop::on_signals()?;
    let stopped = || stop.is_asked();
    let mut process = Process::open(flipped(typed, pid, snapshot)?, typed.threads.clone(), &stopped)?;
    let named: Vec<Named> = arms.into_iter().map(|(_, named)| named).collect();
    let names = named.iter().map(|named| named.name.clone()).collect();
    let identity = identity(desk, pid, process.started());
    let mut journal = Journal::open(typed, desk.seed, identity, names, Method::Flip)?;
    desk.seed = journal.seed();
    let spec = Spec {
        program: words(desk, pid),
        method: Method::Flip,
        reason: "a process that runs already can be compared in place: no restart, the same data at the same addresses"
            .to_owned(),
        in_place: Some(how(typed, pid)),
        arms: named,
        ..spec(typed, &asked, desk.seed)
    };
    let done = journal.take_done(&spec);
    let mut progress = desk.ui.progress();
    let finished = inplace::run(&spec, done, &plan, &mut process, &mut journal, &mut progress);
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

/// The two arms that pages in place can have.
fn arms(names: &[String]) -> anyhow::Result<Vec<(To, Named)>> {
    let arm = |name: &String| {
        let (to, kind) = match name.as_str() {
            "base" => (To::Base, PageKind::Base),
            "thp" => (To::Large, PageKind::Thp),
            _ => {
                bail!("--arms {name}: memory of a living process can be flipped to base and thp only (write base,thp)")
            }
        };
        let named = Named {
            name: name.clone(),
            technique: to.technique().to_owned(),
            kind: Some(kind),
        };
        Ok((to, named))
    };
    let arms: Vec<(To, Named)> = names.iter().map(arm).collect::<anyhow::Result<_>>()?;
    match arms.as_slice() {
        [(first, _), (second, _)] if first != second => Ok(arms),
        _ => bail!(
            "--arms {}: a flip in place is between two arms (write base,thp)",
            names.join(",")
        ),
    }
}

fn asked(typed: &typed::Compare) -> anyhow::Result<Vec<Asked>> {
    if typed.metric.is_empty() && typed.load.is_some() {
        return Ok(vec![wall()?]);
    }
    Ok(typed.metric.clone())
}

fn length(typed: &typed::Compare) -> Length {
    match &typed.load {
        Some(load) => Length::Load(load.clone()),
        None => Length::Time(typed.slice.unwrap_or(SLICE)),
    }
}

fn flipped(typed: &typed::Compare, pid: u32, snapshot: &Snapshot) -> anyhow::Result<flip::Spec> {
    Ok(flip::Spec {
        pid,
        span: typed.range.clone(),
        used: USED,
        budget: None,
        base_page: snapshot.base_page().into_result().context("the size of base pages")?,
        page: snapshot
            .pmd_page()
            .into_result()
            .context("this kernel has no transparent large pages to collapse into")?,
    })
}

fn how(typed: &typed::Compare, pid: u32) -> InPlace {
    let slice_seconds = match length(typed) {
        Length::Time(time) => Some(time.as_secs_f64()),
        Length::Load(_) => None,
    };
    InPlace {
        pid,
        range: typed.range.to_string(),
        threads: typed.threads.to_string(),
        slice_seconds,
        settle_seconds: SETTLE.as_secs_f64(),
    }
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
