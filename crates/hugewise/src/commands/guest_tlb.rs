//! `hugewise measure guest --tlb`: TLB discovery inside a guest, and whether timing names the pages behind it.

use anyhow::{Context, bail};
use host::Snapshot;
use measure::guest::Error;
use measure::guest::tlb::{MEMORY, Spec};
use model::guest::tlb::GuestTlb;
use model::{Bytes, PageKind};

use super::Desk;
use super::guest::{Coded, all_kinds};
use super::pools::on_loan;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Guest) -> anyhow::Result<Outcome> {
    let form = desk.form::<GuestTlb>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let spec = spec(typed, &snapshot)?;
    let stop = Stop::on_signals()?;
    // Before pages are borrowed for nothing.
    measure::guest::can_run().map_err(Coded)?;
    desk.ui.note(&format!(
        "timing translation inside a guest on {} page kinds",
        spec.kinds.len()
    ));
    let wanted = spec.kinds.iter().map(|&kind| (kind, MEMORY));
    let measured = on_loan(&desk.ui, typed.placement.no_pool, wanted, |progress| {
        measure::guest::tlb::run(&spec, progress, &|| stop.is_asked())
    });
    let (guest, warnings) = match measured {
        Ok(measured) => measured,
        Err(Error::Interrupted) => return Ok(Outcome::Interrupted),
        Err(error) => return Err(Coded(error).into()),
    };
    if let Some(why) = nothing(&guest) {
        bail!("not-obtained: nothing of what was asked for could be measured: {why}");
    }
    let result = desk.about(&snapshot, warnings, guest);
    desk.give(&result, form)
}

fn spec(typed: &typed::Guest, snapshot: &Snapshot) -> anyhow::Result<Spec> {
    let kinds = if typed.pages.is_empty() {
        usual(snapshot)
    } else {
        typed.pages.clone()
    };
    Ok(Spec {
        kinds,
        levels: !typed.quick,
        cpu: typed.placement.cpu,
        node: typed.placement.node,
        base_page: snapshot.base_page().into_result().context("the size of base pages")?,
        // Without transparent pages no kind needs it; the value only has to be a size.
        pmd_page: snapshot.pmd_page().known().copied().unwrap_or(Bytes::mib(2)),
        mmu: snapshot.kvm.mmu.clone(),
    })
}

/// All kinds but 1 GiB pages: a guest's 2 MiB pages gain nothing by them over 2 MiB ones.
fn usual(snapshot: &Snapshot) -> Vec<PageKind> {
    let mut kinds = all_kinds(snapshot);
    kinds.retain(|&kind| kind != PageKind::HUGETLB_1G);
    kinds
}

/// Why nothing was measured at all, if so.
fn nothing(guest: &GuestTlb) -> Option<&str> {
    let mut why = guest.behind.iter().map(|behind| behind.not_measured.as_deref());
    if why.clone().all(|why| why.is_some()) {
        why.next().flatten()
    } else {
        None
    }
}
