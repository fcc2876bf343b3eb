//! `hugewise measure guest`: the same rings inside a KVM guest, on pages that are given back.

use std::fmt;
use std::time::Duration;

use anyhow::bail;
use host::Snapshot;
use measure::guest::{Error, Spec};
use model::Warning;
use model::guest::{Guest, GuestPage};
use model::latency::{Access, Pattern};

use super::Desk;
use super::measuring::{all_kinds, available, note_limit, page_sizes, room, unless_stopped, usual_kinds};
use super::pools::on_loan;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::{Outcome, Ui};

/// Time for the timed walks of a whole matrix; with set-up, warming and operations it stays under a minute.
const BUDGET: Duration = Duration::from_secs(20);

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Guest) -> anyhow::Result<Outcome> {
    desk.must_be_live("measuring")?;
    let form = desk.form::<Guest>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let spec = typed_spec(typed, &snapshot, desk.seed)?;
    let stop = Stop::on_signals()?;
    let Some((guest, warnings)) = measure(&desk.ui, &stop, &spec, typed.placement.no_pool)? else {
        return Ok(Outcome::Interrupted);
    };
    if let Some(why) = nothing(&guest) {
        bail!("not-obtained: nothing of what was asked for could be measured: {why}");
    }
    let mut look = desk.ui.look();
    // The matrix is the picture here.
    look.plot = false;
    let result = desk.about(&snapshot, warnings, guest);
    desk.give_with(&result, form, look)
}

/// The measurement that was typed.
fn typed_spec(typed: &typed::Guest, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    Ok(Spec {
        guest_pages: typed.guest_pages.clone(),
        kinds: match typed.pages.is_empty() {
            true => all_kinds(snapshot),
            false => typed.pages.clone(),
        },
        sizes: typed.working_sets(room(snapshot)?, measure::guest::MOST_SIZES)?,
        pattern: typed.pattern,
        access: typed.access,
        budget: Some(typed.budget.unwrap_or(BUDGET)),
        cpu: typed.placement.cpu,
        node: typed.placement.node,
        ..usual(snapshot, seed)?
    })
}

/// Random reads of the usual page kinds in guests on this machine, without a working set yet.
pub(super) fn usual(snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let (base_page, pmd_page) = page_sizes(snapshot)?;
    Ok(Spec {
        guest_pages: vec![GuestPage::Size4K, GuestPage::Size2M],
        kinds: usual_kinds(snapshot),
        sizes: Vec::new(),
        pattern: Pattern::RandomLine,
        access: Access::Read,
        budget: None,
        seed,
        cpu: None,
        node: None,
        base_page,
        pmd_page,
        available: available(snapshot)?,
        mmu: snapshot.kvm.mmu.clone(),
    })
}

/// Measures, on pages borrowed from the pools unless `no_pool`; `None` if the user stopped it. Whatever happens, the
/// pages are given back.
pub(super) fn measure(
    ui: &Ui,
    stop: &Stop,
    spec: &Spec,
    no_pool: bool,
) -> anyhow::Result<Option<(Guest, Vec<Warning>)>> {
    // Before pages are borrowed for nothing.
    measure::guest::can_run().map_err(Coded)?;
    let largest = spec.sizes.iter().copied().max().unwrap_or_default();
    note_limit(ui);
    ui.note(&format!(
        "measuring {} guest page sizes on {} page kinds at {} working sets",
        spec.guest_pages.len(),
        spec.kinds.len(),
        spec.sizes.len()
    ));
    let wanted = spec
        .kinds
        .iter()
        .map(|&kind| (kind, measure::guest::memory(largest, kind)));
    let measured = on_loan(ui, no_pool, wanted, |progress| {
        measure::guest::run(spec, progress, &|| stop.is_asked())
    });
    unless_stopped(measured.map_err(Coded), |error| matches!(error.0, Error::Interrupted))
}

/// Why no guest was measured at all, if none was, unless it is emulated.
fn nothing(guest: &Guest) -> Option<&str> {
    let emulated = guest.sanity.is_some_and(|sanity| sanity.emulated);
    let mut guests = guest.points.iter().filter(|point| point.guest_page.is_some());
    let any = emulated || guests.clone().any(|point| point.point.ns.is_some());
    let why = guests.find_map(|point| point.point.not_measured.as_deref());
    why.filter(|_| !any)
}

/// An error that scripts recognize by its first word.
#[derive(Debug)]
pub(super) struct Coded(pub(super) Error);

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code(), self.0)
    }
}

impl std::error::Error for Coded {}
