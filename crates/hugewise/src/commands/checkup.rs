//! `hugewise checkup`: inventory, findings, processes, latency natively and in a guest, verdict, and a report that stays.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use host::Snapshot;
use model::guest::Guest;
use model::latency::Latency;
use model::tlb::Tlb;
use model::{Bytes, Envelope, PageKind, Warning};

use super::latency::room;
use super::stop::Stop;
use super::{Desk, guest, latency, ps, tlb};
use crate::cli::meaning::{FROM, TO};
use crate::cli::typed::{self, Format, Part, Sort};
use crate::files::{self, Existing, Target};
use crate::render::look::Look;
use crate::results::{Checkup, Doctor, ProcessList, Skipped, VmList};
use crate::show::show;
use crate::ui::Outcome;
use crate::verdict::verdict;

/// Processes in the result; the sums are over all.
const MOST_PROCESSES: usize = 50;
/// Time for latency in a quick one, of 20 s for everything. A full one takes what the points take alone, so that its values
/// are those of `measure latency`: 10 s for each page kind.
const QUICK_BUDGET: Duration = Duration::from_secs(9);
/// Beyond the TLB reach of base pages on most machines, and warm within a second or two under shadow paging.
const GUEST_SIZE: Bytes = Bytes::mib(256);
const GUEST_BUDGET: Duration = Duration::from_secs(4);

/// How our pages and results begin, and within how many bytes.
const PAGE: &str = "<meta name=\"generator\" content=\"hugewise\">";
const RESULT: &str = "\"schema\": \"hugewise/";
const HEAD: usize = 1024;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Checkup) -> anyhow::Result<Outcome> {
    let form = desk.form::<Checkup>(Format::Text)?;
    let mut files = Files::open(&typed.report, desk.global.yes)?;
    let stop = Stop::on_signals()?;
    desk.ui.note("reading the machine");
    let mut parts = Parts::default();
    let read = stop.while_reading(|| {
        let snapshot = Snapshot::take(&desk.source);
        let doctor = parts.read("doctor", doctor(desk, typed, &snapshot));
        let processes = parts.read("ps", processes(desk, typed, &snapshot));
        let vms = processes.is_some().then(|| VmList::of(&desk.source));
        (snapshot, doctor, processes, vms)
    });
    if stop.is_asked() {
        return Ok(Outcome::Interrupted);
    }
    let (snapshot, doctor, processes, vms) = read;
    let Some(latency) = parts.measured("latency", latency(desk, typed, &snapshot, &stop)) else {
        return Ok(Outcome::Interrupted);
    };
    let Some(tlb) = parts.measured("tlb", tlb(desk, typed, &snapshot, &stop)) else {
        return Ok(Outcome::Interrupted);
    };
    let Some(guest) = parts.measured("guest", guest(desk, typed, &snapshot, &stop)) else {
        return Ok(Outcome::Interrupted);
    };
    let totals = processes.as_ref().map(|list| &list.totals);
    let verdict = verdict(latency.as_ref().ok_or(parts.why("latency")), &snapshot, totals);
    let machine = snapshot.machine();
    let data = Checkup {
        verdict,
        inventory: snapshot,
        doctor,
        processes,
        vms,
        latency,
        tlb,
        guest,
        skipped: parts.skipped,
    };
    let result = desk.envelope(machine, parts.warnings, data);
    files.write(&result)?;
    // The curves are in the report; here they would push the verdict off the screen.
    let look = Look {
        plot: false,
        ..desk.ui.look()
    };
    let outcome = desk.give_with(&result, form, look)?;
    desk.ui.note(&format!(
        "{} and {} hold the whole result",
        files.report.path.display(),
        files.json.path.display()
    ));
    Ok(outcome)
}

/// The skipped parts and the warnings of the others.
#[derive(Default)]
struct Parts {
    skipped: Vec<Skipped>,
    warnings: Vec<Warning>,
}

impl Parts {
    /// The part, or an entry among the skipped ones.
    fn read<T>(&mut self, name: &str, part: anyhow::Result<T>) -> Option<T> {
        part.map_err(|error| {
            self.skipped.push(Skipped {
                part: name.to_owned(),
                why: format!("{error:#}"),
            });
        })
        .ok()
    }

    /// The same for a measurement, with its warnings; `None` if the user stopped it.
    fn measured<T>(&mut self, name: &str, part: anyhow::Result<Option<(T, Vec<Warning>)>>) -> Option<Option<T>> {
        match self.read(name, part) {
            Some(None) => None,
            None => Some(None),
            Some(Some((part, warnings))) => {
                self.warnings.extend(warnings);
                Some(Some(part))
            }
        }
    }

    /// Why a part is not there, to be quoted within a sentence.
    fn why(&self, name: &str) -> &str {
        let mut skipped = self.skipped.iter();
        let why = skipped.find(|skipped| skipped.part == name);
        why.map_or("", |skipped| skipped.why.trim_end_matches('.'))
    }
}

fn doctor(desk: &Desk<'_>, typed: &typed::Checkup, snapshot: &Snapshot) -> anyhow::Result<Doctor> {
    if typed.skip.contains(&Part::Doctor) {
        bail!("skipped by --skip doctor");
    }
    Ok(Doctor::of(&super::doctor::evidence(desk, snapshot.clone())))
}

fn processes(desk: &Desk<'_>, typed: &typed::Checkup, snapshot: &Snapshot) -> anyhow::Result<ProcessList> {
    if typed.skip.contains(&Part::Ps) {
        bail!("skipped by --skip ps");
    }
    ps::list(&desk.source, snapshot, Sort::Large, Some(MOST_PROCESSES))
}

fn must_be_live(desk: &Desk<'_>) -> anyhow::Result<()> {
    if !desk.source.is_live() {
        bail!("a captured machine can be read but not measured (run this on the machine itself)");
    }
    Ok(())
}

fn latency(
    desk: &Desk<'_>,
    typed: &typed::Checkup,
    snapshot: &Snapshot,
    stop: &Stop,
) -> anyhow::Result<Option<(Latency, Vec<Warning>)>> {
    if typed.skip.contains(&Part::Latency) {
        bail!("skipped by --skip latency");
    }
    must_be_live(desk)?;
    let spec = measure::latency::Spec {
        sizes: sizes(typed.quick, snapshot)?,
        budget: typed.quick.then_some(QUICK_BUDGET),
        ..latency::usual(snapshot, desk.seed)?
    };
    latency::measure(&desk.ui, stop, &spec, typed.no_pool)
}

/// Levels, walks and what the host backs; base pages alone if quick, since each kind takes seconds.
fn tlb(
    desk: &Desk<'_>,
    typed: &typed::Checkup,
    snapshot: &Snapshot,
    stop: &Stop,
) -> anyhow::Result<Option<(Tlb, Vec<Warning>)>> {
    if typed.skip.contains(&Part::Tlb) {
        bail!("skipped by --skip tlb");
    }
    must_be_live(desk)?;
    let kinds = if typed.quick {
        vec![PageKind::Base]
    } else {
        tlb::usual(snapshot)
    };
    tlb::measure(&desk.ui, stop, &tlb::spec(kinds, true, snapshot)?, true)
}

/// One working set on the pages that most have: enough to see what a hypervisor keeps of the gain.
fn guest(
    desk: &Desk<'_>,
    typed: &typed::Checkup,
    snapshot: &Snapshot,
    stop: &Stop,
) -> anyhow::Result<Option<(Guest, Vec<Warning>)>> {
    if typed.skip.contains(&Part::Guest) {
        bail!("skipped by --skip guest");
    }
    if typed.quick {
        bail!("skipped by --quick; `hugewise measure guest` measures it");
    }
    must_be_live(desk)?;
    let spec = measure::guest::Spec {
        sizes: vec![GUEST_SIZE.min(room(snapshot)?)],
        budget: Some(GUEST_BUDGET),
        ..guest::usual(snapshot, desk.seed)?
    };
    guest::measure(&desk.ui, stop, &spec, typed.no_pool)
}

/// The usual working sets; a quick checkup takes whole octaves up to 1G, since bringing pages in takes longest.
fn sizes(quick: bool, snapshot: &Snapshot) -> anyhow::Result<Vec<Bytes>> {
    let largest = if quick { Bytes::gib(1) } else { TO };
    let mut sizes = measure::latency::sizes(FROM, largest.min(room(snapshot)?).max(FROM));
    if quick {
        sizes.retain(|size: &Bytes| size.0.is_power_of_two());
    }
    Ok(sizes)
}

/// The files that stay, found writable before anything is measured. A run that ends without a result leaves old ones as
/// they were.
struct Files {
    report: Kept,
    json: Kept,
}

struct Kept {
    path: PathBuf,
    target: Target,
}

impl Files {
    fn open(report: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let json = report.with_file_name("result.json");
        for (path, mark) in [(report, PAGE), (&json, RESULT)] {
            if !may_replace && !is_own(path, mark) {
                bail!(
                    "{}: there is a file that hugewise did not write (choose another place with --report, or --yes to replace it)",
                    path.display()
                );
            }
        }
        Ok(Self {
            report: Kept::open(report)?,
            json: Kept::open(&json)?,
        })
    }

    fn write(&mut self, result: &Envelope<Checkup>) -> anyhow::Result<()> {
        let look = Look {
            width: 0,
            color: false,
            plot: false,
        };
        for (kept, form) in [(&mut self.report, Format::Html), (&mut self.json, Format::Json)] {
            let written = kept.target.put(&show(result, form, look)?, Existing::Replace);
            written.with_context(|| kept.path.display().to_string())?;
        }
        Ok(())
    }
}

/// May it be replaced: is there no such file, or no regular one, or one that begins as ours do?
fn is_own(path: &Path, mark: &str) -> bool {
    if !path.is_file() {
        return true;
    }
    let mut start = vec![0; HEAD];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|length| length == 0 || String::from_utf8_lossy(&start[..length]).contains(mark))
}

impl Kept {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let target = Target::open(path, files::Access::Usual).with_context(|| {
            format!(
                "{}: the file cannot be written (choose another place with --report)",
                path.display()
            )
        })?;
        let path = path.to_owned();
        Ok(Self { path, target })
    }
}
