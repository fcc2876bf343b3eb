//! `hugewise ps`: the page kinds behind all processes, or behind one.

mod groups;
mod select;

use std::time::{Duration, Instant};

use anyhow::Context;
use host::processes::{self, Limits, ListOptions, Missed, NodePages, Reason};
use host::{Snapshot, Source};
use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind, Reading};

use super::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, Format, Sort};
use crate::results::ps::{MappingRow, ProcessRow};
use crate::results::{OneProcess, ProcessList};
use crate::ui::Outcome;
use select::Select;

/// A process with less on base pages has nothing to gain that is worth a look at its mappings.
const WORTH_A_LOOK: Bytes = Bytes::mib(16);
/// How soon Ctrl-C ends a watch.
const NAP: Duration = Duration::from_millis(50);

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Ps) -> anyhow::Result<Outcome> {
    match typed.watch {
        None => once(desk, typed),
        Some(seconds) => watch(desk, typed, Duration::from_secs_f64(seconds)),
    }
}

/// Looks again and again. Ctrl-C is how a watch ends, so it ends well.
fn watch(desk: &mut Desk<'_>, typed: &typed::Ps, every: Duration) -> anyhow::Result<Outcome> {
    let stop = Stop::on_signals()?;
    desk.ui.watch();
    while !stop.is_asked() && !desk.ui.is_gone() {
        let began = Instant::now();
        stop.while_reading(|| once(desk, typed))?;
        while began.elapsed() < every && !stop.is_asked() {
            std::thread::sleep(NAP.min(every));
        }
    }
    Ok(Outcome::Done)
}

fn once(desk: &mut Desk<'_>, typed: &typed::Ps) -> anyhow::Result<Outcome> {
    let snapshot = Snapshot::take(&desk.source);
    match typed.pid {
        Some(pid) => {
            let form = desk.form::<OneProcess>(Format::Text)?;
            let one = one(&desk.source, &snapshot, pid, typed.vmas)?;
            let result = desk.about(&snapshot, Vec::new(), one);
            desk.give(&result, form)
        }
        None => {
            let form = desk.form::<ProcessList>(Format::Text)?;
            let list = selected(&desk.source, &snapshot, typed)?;
            let result = desk.about(&snapshot, Vec::new(), list);
            desk.give(&result, form)
        }
    }
}

/// All processes, in the order given.
pub(super) fn list(source: &Source, sort: Sort, top: Option<usize>) -> anyhow::Result<ProcessList> {
    let snapshot = Snapshot::take(source);
    let rows = rows(source, &snapshot)?;
    let held = processes::held_by_nobody(source, &snapshot, &rows);
    let rows = rows.into_iter().map(ProcessRow::new);
    let mut list = ProcessList::new(rows.collect(), sort, top);
    list.held_by_nobody = Some(held);
    Ok(list)
}

fn rows(source: &Source, snapshot: &Snapshot) -> anyhow::Result<Vec<ProcessPages>> {
    let listed = processes::list(source, &ListOptions::default()).into_result();
    let listed = listed.with_context(|| format!("the processes of {}", snapshot.source))?;
    Ok(listed.rows)
}

/// The processes asked for, or sums over them.
fn selected(source: &Source, snapshot: &Snapshot, typed: &typed::Ps) -> anyhow::Result<ProcessList> {
    let select = Select::new(source, typed)?;
    let all = rows(source, snapshot)?;
    let held = processes::held_by_nobody(source, snapshot, &all);
    let fitting = all.into_iter().filter(|process| select.fits(source, process));
    let rows: Vec<ProcessRow> = fitting.map(|pages| closer(source, snapshot, pages, typed)).collect();
    let groups = typed.by.map(|by| groups::sums(source, &rows, by));
    let mut list = ProcessList::new(rows, typed.sort, typed.top);
    if groups.is_some() {
        list.processes.clear();
    }
    Ok(ProcessList {
        filter: select.words(),
        groups,
        held_by_nobody: Some(held),
        ..list
    })
}

/// With what needs its mappings, as far as that was asked for.
fn closer(source: &Source, snapshot: &Snapshot, pages: ProcessPages, typed: &typed::Ps) -> ProcessRow {
    let mut row = ProcessRow::new(pages);
    let base = row.pages.backing.known().map(|backing| backing.of(PageKind::Base));
    let is_worth = (typed.why || typed.sort == Sort::Missed) && base.is_some_and(|base| base >= WORTH_A_LOOK);
    if !is_worth && !typed.numa {
        return row;
    }
    let mappings = processes::mappings(source, row.pages.pid);
    row.missed = is_worth.then(|| missed(&mappings, &row.pages, snapshot));
    row.nodes = typed
        .numa
        .then(|| nodes(source, row.pages.pid, &mappings, Limits::default()));
    row
}

fn missed(mappings: &Reading<Vec<MappingPages>>, process: &ProcessPages, snapshot: &Snapshot) -> Reading<Missed> {
    let missed = mappings.as_ref().into_result().and_then(|mappings| {
        let missed = processes::missed(mappings, process, &snapshot.thp);
        missed.into_result()
    });
    missed.into()
}

fn nodes(source: &Source, pid: u32, mappings: &Reading<Vec<MappingPages>>, limits: Limits) -> Reading<Vec<NodePages>> {
    let mappings = mappings.known().map_or(&[][..], Vec::as_slice);
    processes::nodes(source, pid, mappings, limits)
}

fn one(source: &Source, snapshot: &Snapshot, pid: u32, vmas: bool) -> anyhow::Result<OneProcess> {
    let process = processes::one(source, pid).into_result();
    let process = process.with_context(|| format!("process {pid} of {}", source.name()))?;
    let mappings = processes::mappings_within(source, pid, Limits::PATIENT);
    let missed = missed(&mappings, &process, snapshot);
    let nodes = nodes(source, pid, &mappings, Limits::PATIENT);
    let was_refused = missed
        .known()
        .is_some_and(|missed| missed.why.contains_key(&Reason::NotGiven));
    let rows = |mappings: Vec<MappingPages>| {
        let row = |pages| MappingRow {
            why_base: processes::why_base(&pages, &process, snapshot.thp.known()),
            pages,
        };
        mappings.into_iter().map(row).collect()
    };
    Ok(OneProcess {
        mappings: vmas.then(|| mappings.map(rows)),
        missed: Some(missed),
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
        let charge = count("thp_fault_fallback_charge").map_or_else(String::new, |charge| {
            format!(", {charge} of them at the memory limit of a control group")
        });
        hints.push(format!(
            "since boot {given} page faults got a large page and {fallback} did not although they were eligible{charge}"
        ));
    }
    if let Some(collapsed) = count("thp_collapse_alloc") {
        let failed = count("thp_collapse_alloc_failed")
            .map_or_else(String::new, |failed| format!(", and found none for {failed}"));
        hints.push(format!("khugepaged collapsed {collapsed} ranges since boot{failed}"));
    }
    hints
}
