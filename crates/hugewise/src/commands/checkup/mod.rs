//! `hugewise checkup`: inventory, findings, processes, latency natively and in a guest, verdict, and a report that stays.

mod bench;
mod kept;
mod parts;

use std::time::Instant;

use host::Snapshot;
use model::Envelope;

use self::bench::{Bench, Measurements};
use self::kept::Files;
use self::parts::Parts;
use super::desk::Desk;
use super::diagnosis::diagnose;
use super::ps;
use super::stop::Stop;
use crate::cli::typed::{self, Format, Part, Sort};
use crate::render::look::Look;
use crate::render::verdict::sentences;
use crate::results::{Checkup, VmList};
use crate::ui::Outcome;
use crate::verdict::verdict;

/// Processes in the result; the sums are over all.
const MOST_PROCESSES: usize = 50;
/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Checkup) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let form = desk.form::<Checkup>(Format::Text)?;
    let mut files = Files::open(&typed.report, desk.global.yes)?;
    let stop = Stop::on_signals()?;
    desk.ui.note("reading the machine");
    let mut parts = Parts::of(&typed.skip, desk.source.is_live());
    let read = stop.while_reading(|| {
        let snapshot = Snapshot::take(&desk.source);
        let doctor = || {
            let evidence = super::doctor::evidence(desk, snapshot.clone());
            Ok(diagnose(&desk.source, &evidence))
        };
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
    let bench = Bench::new(desk, typed, &snapshot, &stop, begun);
    let Some(Measurements {
        headline,
        latency,
        tlb,
        guest,
    }) = bench.all(&mut parts)
    else {
        return Ok(Outcome::Interrupted);
    };
    let totals = processes.as_ref().map(|list| &list.totals);
    let mut verdict = verdict(headline.as_ref().ok_or(parts.why(Part::Latency)), &snapshot, totals);
    verdict.sentences = sentences(&verdict).to_vec();
    let machine = snapshot.machine();
    let data = Checkup {
        verdict,
        inventory: snapshot,
        doctor,
        processes,
        vms,
        headline,
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
