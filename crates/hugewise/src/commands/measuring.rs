//! What every measurement asks of the machine before it begins, and how it ends.

use anyhow::{Context, bail};
use host::{Snapshot, Source};
use measure::Error;
use model::{Bytes, PageKind, Progress, Warning};

use super::pools::Loan;
use super::session::Session;
use crate::show::Shape;
use crate::stop;
use crate::ui::{Outcome, Ui};
use draw::Look;

/// A measurement with its warnings.
pub(super) type Measured<T> = anyhow::Result<(T, Vec<Warning>)>;

/// What any of them takes, this program included.
const LEAST: Bytes = Bytes::mib(32);

/// Measures this machine, and shows the result.
pub(super) fn run<T: Shape>(
    look: Look,
    session: &mut Session<'_>,
    measure: impl FnOnce(&Session<'_>, &Snapshot) -> Measured<T>,
) -> anyhow::Result<Outcome> {
    session.must_be_live("measuring")?;
    let form = session.form::<T>()?;
    let snapshot = Snapshot::take(&session.source);
    stop::on_signals()?;
    let (measured, warnings) = measure(session, &snapshot)?;
    let result = session.about(&snapshot, warnings, measured);
    session.warn(&result);
    session.print(&result, form, look)
}

/// Refuses ends of working sets that are the wrong way round.
pub(super) fn must_rise(from: Bytes, to: Bytes) -> anyhow::Result<()> {
    if from > to {
        bail!("--from {from} is larger than --to {to} (write the smaller size after --from)");
    }
    Ok(())
}

/// What was typed, or else what is usual.
pub(super) fn or_usual<T: Clone>(args: &[T], usual: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if args.is_empty() { usual() } else { args.to_vec() }
}

/// base, thp, and 2M pages from a pool, where the kernel has them.
pub(super) fn usual_kinds(snapshot: &Snapshot) -> Vec<PageKind> {
    let mut kinds = all_kinds(snapshot);
    kinds.retain(|kind| *kind != PageKind::HUGETLB_1G);
    kinds
}

/// The size of a cache of data, where it is known.
pub(super) fn cache(snapshot: &Snapshot, level: u32) -> Option<Bytes> {
    snapshot.cpu.data_cache(level)?.size.known().copied()
}

/// A quarter of the memory that can be had: room for several kinds at a time without reclaim.
pub(super) fn room(snapshot: &Snapshot) -> anyhow::Result<Bytes> {
    Ok(Bytes(available(snapshot)?.0 / 4))
}

/// The least of what the machine has and what the limits of this process leave: control groups, and those of `ulimit`.
pub(super) fn available(snapshot: &Snapshot) -> anyhow::Result<Bytes> {
    let machine = snapshot.memory.get("MemAvailable").into_result();
    let machine = machine.context("how much memory can be had")?;
    let limit = host::room::own(&Source::live()).into_result();
    let limit = limit.context("how much memory a limit leaves")?;
    let limit = limit.filter(|limit| limit.left <= machine);
    let available = limit.as_ref().map_or(machine, |limit| limit.left);
    if available < LEAST {
        let set_by = limit.map_or_else(|| "MemAvailable".to_owned(), |limit| limit.set_by);
        bail!("{set_by} leaves {available} of memory, and the least that a measurement takes is {LEAST}");
    }
    Ok(available)
}

/// Says which limit decides how much memory is taken, if it is not the machine.
fn note_limit(ui: &Ui) {
    let room = host::room::own(&Source::live());
    if let Some(limit) = room.known().and_then(Option::as_ref) {
        ui.note(&format!("{} leaves {} of memory", limit.set_by, limit.left));
    }
}

/// base, thp, and pages from pools of 2M and 1G, where the kernel has them.
pub(super) fn all_kinds(snapshot: &Snapshot) -> Vec<PageKind> {
    let has = snapshot.page_kinds();
    let pooled = [PageKind::HUGETLB_2M, PageKind::HUGETLB_1G];
    let all = [PageKind::Base, PageKind::Thp].into_iter().chain(pooled);
    all.filter(|kind| has.contains(kind)).collect()
}

/// Measures with so many bytes of each pooled kind on loan, unless `no_pool`. Whatever happens,
/// the pages are given back. The note says what is measured; a measurement that goes on has none, and reports nothing of its loan.
pub(super) fn on_loan<T>(
    ui: &Ui,
    no_pool: bool,
    note: Option<&str>,
    wanted: impl IntoIterator<Item = (PageKind, Bytes)>,
    measure: impl FnOnce(&mut dyn Progress, &dyn Fn() -> bool) -> Result<(T, Vec<Warning>), Error>,
) -> Measured<T> {
    if let Some(note) = note {
        note_limit(ui);
        ui.note(note);
    }
    let loan = Loan::take(ui, wanted.into_iter().filter(|_| !no_pool), note.is_some());
    let measured = measure(&mut ui.progress(), &stop::is_asked);
    loan.give_back(ui);
    Ok(measured?)
}
