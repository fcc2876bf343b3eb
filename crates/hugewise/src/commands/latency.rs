//! `hugewise measure latency`: from what was typed to a measurement on pages that are given back.

use host::Snapshot;
use measure::latency::{Error, Spec};
use model::Warning;
use model::latency::{Access, Latency, Pattern};

use super::Desk;
use super::measuring::{available, note_limit, page_sizes, room, unless_stopped, usual_kinds};
use super::pools::on_loan;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::{Outcome, Ui};

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
    let (base_page, pmd_page) = page_sizes(snapshot)?;
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
        base_page,
        pmd_page,
        private_cache: level(2),
        last_cache: (2..=4).filter_map(level).max(),
        available: available(snapshot)?,
    })
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
    unless_stopped(measured, |error| matches!(error, Error::Interrupted))
}
