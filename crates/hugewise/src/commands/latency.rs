//! `hugewise measure latency`: from what was typed to a measurement on pages that are given back.

use std::time::Duration;

use anyhow::Context;
use host::{Snapshot, Source};
use measure::latency::{Error, Spec};
use model::latency::{Access, Latency, Pattern};
use model::{Bytes, PageKind, Warning};

use super::Desk;
use super::pools::on_loan;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::{Outcome, Progress, Ui};

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Latency) -> anyhow::Result<Outcome> {
    desk.must_be_live("measuring")?;
    let form = desk.form::<Latency>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let spec = typed_spec(typed, &snapshot, desk.seed)?;
    let stop = Stop::on_signals()?;
    let Some((latency, warnings)) = measure(&desk.ui, &stop, &spec, typed.placement.no_pool)? else {
        return Ok(Outcome::Interrupted);
    };
    let mut look = desk.ui.look();
    look.plot = (look.plot || typed.plot) && !typed.no_plot;
    let result = desk.about(&snapshot, warnings, latency);
    desk.give_with(&result, form, look)
}

/// The measurement that was typed.
fn typed_spec(typed: &typed::Latency, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let usual = usual(snapshot, seed)?;
    Ok(Spec {
        kinds: match typed.pages.is_empty() {
            true => usual.kinds,
            false => typed.pages.clone(),
        },
        sizes: typed.working_sets(room(snapshot)?, measure::latency::sizes)?,
        patterns: typed.pattern.clone(),
        accesses: typed.access.each(),
        budget: typed.budget,
        cpu: typed.placement.cpu,
        node: typed.placement.node,
        ..usual
    })
}

/// Random reads of the usual page kinds on this machine, without a working set yet.
pub(super) fn usual(snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let level = |level| snapshot.cpu.data_cache(level)?.size.known().copied();
    Ok(Spec {
        kinds: usual_kinds(snapshot),
        sizes: Vec::new(),
        patterns: vec![Pattern::RandomLine],
        accesses: vec![Access::Read],
        budget: None,
        seed,
        cpu: None,
        node: None,
        one_node: snapshot.topology.nodes.known().is_none_or(|nodes| nodes.len() < 2),
        base_page: snapshot.base_page().into_result().context("the size of base pages")?,
        // Without THP no kind needs it; the value only has to be a size.
        pmd_page: snapshot.pmd_page().known().copied().unwrap_or(Bytes::mib(2)),
        private_cache: level(2),
        last_cache: (2..=4).filter_map(level).max(),
        available: available(snapshot)?,
    })
}

/// base, thp, and 2M pages from a pool, where the kernel has them.
pub(super) fn usual_kinds(snapshot: &Snapshot) -> Vec<PageKind> {
    let has = snapshot.page_kinds();
    let usual = [PageKind::Base, PageKind::Thp, PageKind::HUGETLB_2M];
    usual.into_iter().filter(|kind| has.contains(kind)).collect()
}

/// A quarter of the memory that can be had: room for several kinds at a time without reclaim.
pub(super) fn room(snapshot: &Snapshot) -> anyhow::Result<Bytes> {
    Ok(Bytes(available(snapshot)?.0 / 4))
}

/// The least of what the machine has and what the limits of this process leave: control groups, and those of `ulimit`.
pub(super) fn available(snapshot: &Snapshot) -> anyhow::Result<Bytes> {
    let machine = snapshot.memory.get("MemAvailable").into_result();
    let machine = machine.context("how much memory can be had")?;
    let room = host::room::own(&Source::live()).into_result();
    Ok(room.context("how much memory a limit leaves")?.within(machine))
}

/// Says which limit decides how much memory is taken, if it is not the machine.
pub(super) fn note_limit(ui: &Ui) {
    if let Some(limit) = host::room::own(&Source::live())
        .known()
        .and_then(|room| room.least.clone())
    {
        ui.note(&format!("{} leaves {} of memory", limit.set_by, limit.left));
    }
}

/// Measures, on pages borrowed from the pools unless `no_pool`; `None` if the user stopped it. Whatever happens, the
/// pages are given back.
pub(super) fn measure(
    ui: &Ui,
    stop: &Stop,
    spec: &Spec,
    no_pool: bool,
) -> anyhow::Result<Option<(Latency, Vec<Warning>)>> {
    let largest = spec.sizes.iter().copied().max().unwrap_or_default();
    note_limit(ui);
    ui.note(&format!(
        "measuring {} page kinds at {} working sets",
        spec.kinds.len(),
        spec.sizes.len()
    ));
    let wanted = spec.kinds.iter().map(|&kind| (kind, largest));
    let measured = on_loan(ui, no_pool, wanted, |progress| {
        measure::latency::run(spec, progress, &|| stop.is_asked())
    });
    match measured {
        Ok(measured) => Ok(Some(measured)),
        Err(Error::Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl model::Progress for Progress {
    fn step(&mut self, done: f64, left: Duration, what: &str) {
        self.show(done, left, what);
    }
}
