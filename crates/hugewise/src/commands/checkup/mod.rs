//! `hugewise checkup`: inventory, findings, processes, latency natively and in a guest, verdict, and a report that stays.

mod bench;
mod kept;
mod parts;

use std::time::Instant;

use host::Snapshot;
use model::{Bytes, Envelope};
use programs::{Evidence, Kind, Program};

use self::bench::{Bench, Measurements};
use self::kept::Kept;
use self::parts::Parts;
use super::diagnosis::diagnose;
use super::ps;
use super::session::Session;
use crate::cli::args::{self, Format, Part};
use crate::render::find::verdict::sentences;
use crate::results::{Checkup, Doctor, ProcessList, VmList};
use crate::stop;
use crate::ui::Outcome;
use crate::verdict::{Grounds, Server, verdict};
use draw::Look;

/// Processes in the result; the sums are over all.
const MOST_PROCESSES: usize = 50;

pub(super) fn run(session: &mut Session<'_>, args: &args::Checkup) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let form = session.form::<Checkup>()?;
    let is_output = form == Format::Json && session.global.output.is_some();
    let mut files = kept::open(&args.report, !is_output, session.global.yes)?;
    stop::on_signals()?;
    session.ui.note("reading the machine");
    let mut parts = Parts::of(&args.skip, session.source.is_live());
    let read = stop::while_reading(|| Read::of(session, &mut parts))?;
    if stop::is_asked() {
        return Ok(Outcome::Interrupted);
    }
    let bench = Bench::new(session, args, &read.snapshot, begun);
    let measured = bench.all(&mut parts)?;
    let machine = read.snapshot.machine();
    let data = checkup(session, read, measured, &mut parts);
    let result = session.envelope(machine, parts.warnings, data);
    files.iter_mut().try_for_each(|file| file.write(&result))?;
    give(session, &result, form, &files)
}

/// What is read of the machine, before anything is measured.
struct Read {
    snapshot: Snapshot,
    doctor: Option<Doctor>,
    servers: Vec<Server>,
    processes: Option<ProcessList>,
    vms: Option<VmList>,
}

impl Read {
    fn of(session: &Session<'_>, parts: &mut Parts<'_>) -> anyhow::Result<Self> {
        let snapshot = Snapshot::take(&session.source);
        let evidence = parts.read(Part::Doctor, || Ok(super::doctor::evidence(session, snapshot.clone())))?;
        let processes = || ps::list(&session.source, &snapshot, Some(MOST_PROCESSES));
        let processes = parts.read(Part::Ps, processes)?;
        Ok(Self {
            servers: evidence.as_ref().map(servers).unwrap_or_default(),
            doctor: evidence.as_ref().map(|evidence| diagnose(&session.source, evidence)),
            vms: processes.is_some().then(|| VmList::of(&session.source)),
            processes,
            snapshot,
        })
    }
}

/// All of it with its verdict.
fn checkup(session: &Session<'_>, read: Read, measured: Measurements, parts: &mut Parts<'_>) -> Checkup {
    let root = session.global.root.as_ref().map(|root| root.display().to_string());
    let mut verdict = verdict(&Grounds {
        headline: measured.headline.as_ref().ok_or(parts.why(Part::Latency)),
        tlb: measured.tlb.as_ref(),
        snapshot: &read.snapshot,
        processes: read.processes.as_ref(),
        doctor: read.doctor.as_ref(),
        servers: &read.servers,
        root: root.as_deref(),
    });
    verdict.sentences = sentences(&verdict).to_vec();
    Checkup {
        verdict,
        inventory: read.snapshot,
        doctor: read.doctor,
        processes: read.processes,
        vms: read.vms,
        headline: measured.headline,
        latency: measured.latency,
        tlb: measured.tlb,
        guest: measured.guest,
        skipped: std::mem::take(&mut parts.skipped),
    }
}

fn give(
    session: &mut Session<'_>,
    result: &Envelope<Checkup>,
    form: Format,
    files: &[Kept],
) -> anyhow::Result<Outcome> {
    // The curves are in the report; here they would push the verdict off the screen.
    let look = Look {
        plot: false,
        ..session.ui.look()
    };
    let outcome = session.print(result, form, look)?;
    // They are about single points; before the answer they would push it off the screen.
    session.warn(result);
    let names: Vec<String> = files.iter().map(Kept::name).collect();
    let hold = if names.len() == 1 { "holds" } else { "hold" };
    session
        .ui
        .note(&format!("{} {hold} the whole result", names.join(" and ")));
    Ok(outcome)
}

/// Programs that have huge page settings of their own, the largest first.
fn servers(evidence: &Evidence) -> Vec<Server> {
    let programs = evidence.programs.known().into_iter().flatten();
    let server = |program: &Program| {
        let kind = program.kind.known()?.filter(|kind| *kind != Kind::Kubelet)?;
        let bytes = *program.pages.resident.known()?;
        let server = Server {
            name: program.pages.name.clone(),
            pid: program.pid(),
            runs_machines: kind.is_hypervisor(),
        };
        Some((bytes, server))
    };
    let mut servers: Vec<(Bytes, Server)> = programs.filter_map(server).collect();
    servers.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    servers.into_iter().map(|(_, server)| server).collect()
}
