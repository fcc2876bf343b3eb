//! `hugewise checkup`: inventory, processes, latency, verdict, and a report that stays.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use host::Snapshot;
use model::latency::{Access, Latency, Pattern};
use model::{Bytes, Doubt, Envelope};

use super::latency::{Wish, measure, room, usual_kinds};
use super::{Desk, ps};
use crate::cli::meaning::{FROM, TO};
use crate::cli::typed::{self, Format, Part, Sort};
use crate::results::{Checkup, ProcessList, Skipped};
use crate::show::show;
use crate::ui::Outcome;
use crate::verdict::verdict;

/// Processes in the result; the sums are over all.
const MOST_PROCESSES: usize = 50;
/// Time for latency: what is left of 90 s and of 20 s after set-up and everything else.
const BUDGET: Duration = Duration::from_secs(45);
const QUICK_BUDGET: Duration = Duration::from_secs(9);

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Checkup) -> anyhow::Result<Outcome> {
    let form = desk.form::<Checkup>(Format::Text)?;
    let mut files = Files::open(&typed.report)?;
    desk.ui.note("reading the machine");
    let snapshot = Snapshot::take(&desk.source);
    let mut skipped = Vec::new();
    let processes = part(&mut skipped, "ps", processes(desk, typed));
    let latency = match latency(desk, typed, &snapshot) {
        Measured::Interrupted => return Ok(Outcome::Interrupted),
        Measured::Done(latency, doubts) => Ok((latency, doubts)),
        Measured::Not(why) => Err(why),
    };
    let latency = part(&mut skipped, "latency", latency);
    let result = compose(desk, snapshot, processes, latency, skipped);
    files.write(&result)?;
    let outcome = desk.give(&result, form)?;
    desk.ui.note(&format!(
        "{} and {} hold all of it",
        files.report.0.display(),
        files.json.0.display()
    ));
    Ok(outcome)
}

fn compose(
    desk: &Desk<'_>,
    snapshot: Snapshot,
    processes: Option<ProcessList>,
    latency: Option<(Latency, Vec<Doubt>)>,
    skipped: Vec<Skipped>,
) -> Envelope<Checkup> {
    let why = skipped
        .iter()
        .find(|skipped| skipped.part == "latency")
        .map_or("", |skipped| skipped.why.as_str());
    let (latency, doubts) = latency.unzip();
    let totals = processes.as_ref().map(|list| &list.totals);
    let verdict = verdict(latency.as_ref().ok_or(why.trim_end_matches('.')), &snapshot, totals);
    let machine = snapshot.machine();
    let data = Checkup {
        verdict,
        inventory: snapshot,
        processes,
        latency,
        skipped,
    };
    desk.envelope(machine, doubts.unwrap_or_default(), data)
}

/// A part that is there, or an entry among those left out.
fn part<T>(skipped: &mut Vec<Skipped>, name: &str, part: Result<T, String>) -> Option<T> {
    part.map_err(|why| {
        let part = name.to_owned();
        skipped.push(Skipped { part, why });
    })
    .ok()
}

fn processes(desk: &Desk<'_>, typed: &typed::Checkup) -> Result<ProcessList, String> {
    if typed.skip.contains(&Part::Ps) {
        return Err("left out by --skip ps".to_owned());
    }
    ps::list(&desk.source, Sort::Large, Some(MOST_PROCESSES)).map_err(|error| format!("{error:#}"))
}

/// What became of the measurement.
enum Measured {
    Done(Latency, Vec<Doubt>),
    Not(String),
    Interrupted,
}

fn latency(desk: &Desk<'_>, typed: &typed::Checkup, snapshot: &Snapshot) -> Measured {
    if typed.skip.contains(&Part::Latency) {
        return Measured::Not("left out by --skip latency".to_owned());
    }
    if !desk.source.is_live() {
        return Measured::Not(
            "a captured machine can be read but not measured; run this on the machine itself".to_owned(),
        );
    }
    let spec = wish(typed.quick, snapshot).and_then(|wish| wish.spec(snapshot, desk.seed));
    match spec.and_then(|spec| measure(&desk.ui, &spec, typed.no_pool)) {
        Ok(Some((latency, doubts))) => Measured::Done(latency, doubts),
        Ok(None) => Measured::Interrupted,
        Err(error) => Measured::Not(format!("{error:#}")),
    }
}

/// The usual kinds over the usual sizes; a quick one takes whole octaves up to 1G, since bringing pages in takes longest.
fn wish(quick: bool, snapshot: &Snapshot) -> anyhow::Result<Wish> {
    let largest = if quick { Bytes::gib(1) } else { TO };
    let mut sizes = lab::latency::sizes(FROM, largest.min(room(snapshot)?).max(FROM));
    if quick {
        sizes.retain(|size: &Bytes| size.0.is_power_of_two());
    }
    Ok(Wish {
        kinds: usual_kinds(snapshot),
        sizes,
        patterns: vec![Pattern::RandomLine],
        accesses: vec![Access::Read],
        budget: Some(if quick { QUICK_BUDGET } else { BUDGET }),
        cpu: None,
        node: None,
    })
}

/// The files that stay, opened before anything is measured.
struct Files {
    report: (PathBuf, File),
    json: (PathBuf, File),
}

impl Files {
    fn open(report: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            report: open(report)?,
            json: open(&report.with_file_name("result.json"))?,
        })
    }

    fn write(&mut self, result: &Envelope<Checkup>) -> anyhow::Result<()> {
        let look = crate::render::look::Look {
            width: 0,
            color: false,
            plot: false,
        };
        for ((path, file), form) in [(&mut self.report, Format::Html), (&mut self.json, Format::Json)] {
            let bytes = show(result, form, look)?;
            file.set_len(0)
                .and_then(|()| file.write_all(&bytes))
                .with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> anyhow::Result<(PathBuf, File)> {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let file = file.with_context(|| {
        format!(
            "{}: the file cannot be written (choose another place with --report)",
            path.display()
        )
    })?;
    Ok((path.to_owned(), file))
}
