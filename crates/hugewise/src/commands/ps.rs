//! `hugewise ps`: the page kinds behind all processes, or behind one.

mod groups;
mod select;

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use host::processes::{self, Coverage, Covering, Ground, Limits, Missed, Missing, Reason, ThpByStart};
use host::snapshot::MountTree;
use host::{Snapshot, Source};
use model::process::{MappingPages, ProcessPages};
use model::{Bytes, Cause, PageKind, Reading, Unread};

use super::session::{Session, now};
use crate::cli::args::{self, Sort};
use crate::results::mappings::{MappingRow, MappingRows};
use crate::results::ps::ProcessRow;
use crate::results::{OneProcess, ProcessList};
use crate::show::{Shape, sample};
use crate::stop;
use crate::ui::Outcome;
use draw::or_empty;
use select::Select;

/// A process with less on base pages has nothing to gain that is worth a look at its mappings.
const WORTH_A_LOOK: Bytes = Bytes::mib(16);
/// How soon Ctrl-C ends a watch.
const POLL_PERIOD: Duration = Duration::from_millis(50);

pub(super) fn run(session: &mut Session<'_>, args: &args::Ps) -> anyhow::Result<Outcome> {
    match args.watch {
        None => once(session, args, None),
        Some(seconds) => watch(session, args, Duration::from_secs_f64(seconds)),
    }
}

/// Looks again and again. Ctrl-C is how a watch ends, so it ends well.
fn watch(session: &mut Session<'_>, args: &args::Ps, every: Duration) -> anyhow::Result<Outcome> {
    let is_series = session.form::<ProcessList>()?.is_series();
    stop::on_signals()?;
    session.ui.is_watch = !is_series;
    let mut turn = 0;
    while !stop::is_asked() && !session.ui.is_gone {
        let began = Instant::now();
        stop::while_reading(|| once(session, args, is_series.then_some(turn)))?;
        turn += 1;
        while began.elapsed() < every && !stop::is_asked() {
            std::thread::sleep(POLL_PERIOD.min(every));
        }
    }
    Ok(Outcome::Done)
}

/// Looks once; `turn` is its number in a series.
fn once(session: &mut Session<'_>, args: &args::Ps, turn: Option<u64>) -> anyhow::Result<Outcome> {
    if turn.is_some() {
        session.started = now();
    }
    match args.pid {
        Some(pid) => give(session, turn, |source, snapshot| one(source, snapshot, pid, args.vmas)),
        None => give(session, turn, |source, snapshot| selected(source, snapshot, args)),
    }
}

fn give<T: Shape>(
    session: &mut Session<'_>,
    turn: Option<u64>,
    look: impl FnOnce(&Source, &Snapshot) -> anyhow::Result<T>,
) -> anyhow::Result<Outcome> {
    let snapshot = Snapshot::take(&session.source);
    let form = session.form::<T>()?;
    let data = look(&session.source, &snapshot)?;
    let result = session.about(&snapshot, Vec::new(), data);
    let Some(turn) = turn else {
        return session.give(&result, form);
    };
    session.ui.result(&sample(&result, form, turn == 0)?)?;
    Ok(Outcome::Done)
}

/// All processes, as the command lists them without options, or the first of these.
pub(super) fn list(source: &Source, snapshot: &Snapshot, top: Option<usize>) -> anyhow::Result<ProcessList> {
    let args = args::Ps {
        top,
        ..args::Ps::default()
    };
    selected(source, snapshot, &args)
}

/// The processes asked for, or sums over them.
fn selected(source: &Source, snapshot: &Snapshot, args: &args::Ps) -> anyhow::Result<ProcessList> {
    let select = Select::new(source, args)?;
    let all = processes::list(source).into_result();
    let all = all.with_context(|| format!("the processes of {}", snapshot.source))?;
    let held = processes::held_by_nobody(source, snapshot, &all);
    let mut unseen = processes::unseen(source);
    let fitting = all.into_iter().filter(|process| {
        let fits = select.fits(source, process);
        fits.unwrap_or_else(|why| {
            unseen.add(&why);
            false
        })
    });
    let rows: Vec<ProcessRow> = fitting.map(|pages| closer(source, snapshot, pages, args)).collect();
    let groups = args.by.map(|by| groups::sums(source, &rows, by));
    let mut list = ProcessList::new(rows, args.sort, args.top);
    if groups.is_some() {
        list.processes.clear();
    }
    Ok(ProcessList {
        filter: select.words(),
        groups,
        held_by_nobody: Some(held),
        unseen,
        ..list
    })
}

/// With what needs its mappings, as far as that was asked for.
fn closer(source: &Source, snapshot: &Snapshot, pages: ProcessPages, args: &args::Ps) -> ProcessRow {
    let mut row = ProcessRow::new(pages);
    let base = row.pages.backing.known().map(|backing| backing.of(PageKind::Base));
    let is_worth = (args.why || args.sort == Sort::Missed) && base.is_some_and(|base| base >= WORTH_A_LOOK);
    if !is_worth && !args.numa {
        return row;
    }
    let found = Walked::over(source, &row.pages, snapshot, Limits::default(), |_, _| {});
    row.nodes = args
        .numa
        .then(|| processes::nodes(source, row.pages.pid, &found.thp, Limits::default()));
    row.missed = is_worth.then_some(found.missed);
    row
}

/// What one walk over the mappings of a process adds up.
struct Walked {
    missed: Reading<Missed>,
    coverage: Reading<Coverage>,
    thp: ThpByStart,
}

impl Walked {
    /// Nothing is kept of a walk that failed, but what `visit` saw.
    fn over(
        source: &Source,
        process: &ProcessPages,
        snapshot: &Snapshot,
        limits: Limits,
        mut visit: impl FnMut(MappingPages, Option<Reason>),
    ) -> Self {
        let mounts = MountTree::of_process(source, process.pid);
        let ground = Ground::new(snapshot, &mounts);
        let mut missing = Missing::new(process, &ground);
        let (mut thp, mut covering) = (ThpByStart::default(), Covering::default());
        let walked = processes::areas::each_mapping(source, process.pid, limits, |mapping| {
            covering.add(mapping);
            let pages = mapping.to_pages();
            let why = missing.add(&pages);
            thp.add(&pages);
            visit(pages, why);
            Ok(())
        });
        let walked = Reading::from(walked);
        Self {
            missed: walked.as_ref().and_then(|&()| missing.sum().into_result()),
            coverage: walked.as_ref().map(|&()| covering.sum()),
            thp: walked.map(|()| thp).into_result().unwrap_or_default(),
        }
    }
}

fn one(source: &Source, snapshot: &Snapshot, pid: u32, vmas: bool) -> anyhow::Result<OneProcess> {
    let process = processes::one_within(source, pid, Limits::PATIENT).into_result();
    let process = process.map_err(|why| match why.unread {
        Cause::Absent if source.list(&format!("/proc/{pid}")).is_absent() => {
            anyhow!("there is no process {pid} on {}", source.name())
        }
        _ => anyhow!("process {pid} of {}: {why}", source.name()),
    })?;
    let mut rows = MappingRows::default();
    let walked = Walked::over(source, &process, snapshot, Limits::PATIENT, |pages, why_base| {
        if vmas {
            rows.push(&MappingRow { pages, why_base });
        }
    });
    let nodes = processes::nodes(source, pid, &walked.thp, Limits::PATIENT);
    let missed = walked.missed.known();
    let was_refused = missed.is_some_and(|missed| missed.why.contains_key(&Reason::NotGiven));
    let mappings = match walked.coverage.unread() {
        Some(why) => Reading::Unread(why.clone()),
        None if rows.is_cut() => {
            let why = format!("its mappings take more than {}", MappingRows::MOST);
            Reading::Unread(Unread::new(Cause::Failed, format!("/proc/{pid}/smaps"), why))
        }
        None => Reading::Known(rows),
    };
    Ok(OneProcess {
        mappings: vmas.then_some(mappings),
        missed: Some(walked.missed),
        coverage: Some(walked.coverage),
        nodes: Some(nodes),
        hints: if was_refused { hints(snapshot) } else { Vec::new() },
        process,
    })
}

/// What the kernel counted about faults that were eligible and got base pages, on the whole machine.
fn hints(snapshot: &Snapshot) -> Vec<String> {
    let count = |name: &str| snapshot.memory.count(name).known().copied();
    let mut hints = Vec::new();
    if let (Some(fallback), Some(given)) = (count("thp_fault_fallback"), count("thp_fault_alloc")) {
        let charge = count("thp_fault_fallback_charge");
        let charge =
            or_empty(charge.map(|charge| format!(", {charge} of them at the memory limit of a control group")));
        hints.push(format!(
            "since boot {given} page faults got a huge page, and {fallback} eligible ones did not{charge}"
        ));
    }
    if let Some(collapsed) = count("thp_collapse_alloc") {
        let failed = count("thp_collapse_alloc_failed");
        let failed = or_empty(failed.map(|failed| format!(", and found none for {failed}")));
        hints.push(format!("khugepaged collapsed {collapsed} ranges since boot{failed}"));
    }
    hints
}
