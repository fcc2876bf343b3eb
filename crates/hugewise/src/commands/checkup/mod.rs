//! `hugewise checkup`: inventory, findings, processes, latency natively and in a guest, verdict, and a report that stays.

mod kept;
mod parts;

use std::time::Duration;

use anyhow::bail;
use host::Snapshot;
use model::guest::Guest;
use model::latency::Latency;
use model::tlb::Tlb;
use model::{Bytes, Envelope, PageKind};

use self::kept::Files;
use self::parts::Parts;
use super::desk::Desk;
use super::latency::{FROM, TO};
use super::measuring::{Measured, room};
use super::stop::Stop;
use super::{guest, latency, ps, tlb};
use crate::cli::typed::{self, Format, Part, Sort};
use crate::render::look::Look;
use crate::render::verdict::sentences;
use crate::results::{Checkup, Doctor, VmList};
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

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Checkup) -> anyhow::Result<Outcome> {
    let form = desk.form::<Checkup>(Format::Text)?;
    let mut files = Files::open(&typed.report, desk.global.yes)?;
    let stop = Stop::on_signals()?;
    desk.ui.note("reading the machine");
    let mut parts = Parts::of(&typed.skip, desk.source.is_live());
    let read = stop.while_reading(|| {
        let snapshot = Snapshot::take(&desk.source);
        let doctor = || Ok(Doctor::of(&super::doctor::evidence(desk, snapshot.clone())));
        let doctor = parts.read(Part::Doctor, doctor);
        let processes = || ps::list(&desk.source, &snapshot, Sort::Large, Some(MOST_PROCESSES));
        let processes = parts.read(Part::Ps, processes);
        let vms = processes.is_some().then(|| VmList::of(&desk.source));
        (snapshot, doctor, processes, vms)
    });
    if stop.is_asked() {
        return Ok(Outcome::Interrupted);
    }
    let (snapshot, doctor, processes, vms) = read;
    let bench = Bench {
        desk,
        typed,
        snapshot: &snapshot,
        stop: &stop,
    };
    let Some((latency, tlb, guest)) = bench.all(&mut parts) else {
        return Ok(Outcome::Interrupted);
    };
    let totals = processes.as_ref().map(|list| &list.totals);
    let mut verdict = verdict(latency.as_ref().ok_or(parts.why(Part::Latency)), &snapshot, totals);
    verdict.sentences = sentences(&verdict).to_vec();
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
    give(desk, &result, form, &files)
}

fn give(desk: &mut Desk<'_>, result: &Envelope<Checkup>, form: Format, files: &Files) -> anyhow::Result<Outcome> {
    // The curves are in the report; here they would push the verdict off the screen.
    let look = Look {
        plot: false,
        ..desk.ui.look()
    };
    let outcome = desk.give_with(result, form, look)?;
    let (report, json) = (files.report.path.display(), files.json.path.display());
    desk.ui.note(&format!("{report} and {json} hold the whole result"));
    Ok(outcome)
}

/// What each measurement of a checkup needs.
struct Bench<'a> {
    desk: &'a Desk<'a>,
    typed: &'a typed::Checkup,
    snapshot: &'a Snapshot,
    stop: &'a Stop,
}

impl Bench<'_> {
    /// Each measurement that could be made; none of them if the user stopped one.
    fn all(&self, parts: &mut Parts<'_>) -> Option<(Option<Latency>, Option<Tlb>, Option<Guest>)> {
        let latency = parts.measured(Part::Latency, || self.latency())?;
        let tlb = parts.measured(Part::Tlb, || self.tlb())?;
        Some((latency, tlb, parts.measured(Part::Guest, || self.guest())?))
    }

    fn latency(&self) -> Measured<Latency> {
        let spec = measure::latency::Spec {
            sizes: sizes(self.typed.quick, self.snapshot)?,
            budget: self.typed.quick.then_some(QUICK_BUDGET),
            ..latency::usual(self.snapshot, self.desk.seed)?
        };
        latency::measure(&self.desk.ui, self.stop, &spec, self.typed.no_pool)
    }

    /// Levels, walks and what the host backs; base pages alone if quick, since each kind takes seconds.
    fn tlb(&self) -> Measured<Tlb> {
        let kinds = match self.typed.quick {
            true => vec![PageKind::Base],
            false => tlb::usual(self.snapshot),
        };
        tlb::measure(&self.desk.ui, self.stop, &tlb::spec(kinds, true, self.snapshot)?, true)
    }

    /// One working set on the pages that most have: enough to see what a hypervisor keeps of the gain.
    fn guest(&self) -> Measured<Guest> {
        if self.typed.quick {
            bail!("skipped by --quick; `hugewise measure guest` measures it");
        }
        let spec = measure::guest::Spec {
            sizes: vec![GUEST_SIZE.min(room(self.snapshot)?)],
            budget: Some(GUEST_BUDGET),
            ..guest::usual(self.snapshot, self.desk.seed)?
        };
        guest::measure(&self.desk.ui, self.stop, &spec, self.typed.no_pool)
    }
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
