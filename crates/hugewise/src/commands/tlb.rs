//! `hugewise measure tlb`: TLB geometry, walk cost and the host's page size, from timing alone.

use host::Snapshot;
use measure::tlb::Spec;
use model::tlb::{Known, Tlb, Ways};
use model::{Bytes, PageKind};
use translation::cpus;

use super::measuring::{self, Measured, available, on_loan, or_usual, usual_kinds};
use super::session::Session;
use crate::cli::args;
use crate::ui::{Outcome, Ui};

/// Pool pages that a kind needs at the most: levels and walks alias one page; only what is shared needs some of its own.
const POOL: Bytes = Bytes::mib(64);

pub(super) fn run(session: &mut Session<'_>, args: &args::Tlb) -> anyhow::Result<Outcome> {
    measuring::run(session.ui.look(), session, |session, snapshot| {
        let kinds = or_usual(&args.pages, || usual(snapshot));
        let spec = Spec {
            cpu: args.cpu,
            ..spec(kinds, args.quick, snapshot)?
        };
        measure(&session.ui, &spec, args.no_pool)
    })
}

/// Measures, on pages borrowed from the pools unless `no_pool`. Whatever happens, the pages are given back.
pub(super) fn measure(ui: &Ui, spec: &Spec, no_pool: bool) -> Measured<Tlb> {
    let note = format!("timing translation on {} page kinds", spec.kinds.len());
    let wanted = spec.kinds.iter().map(|&kind| (kind, POOL));
    on_loan(ui, no_pool, Some(&note), wanted, |progress, stop| {
        measure::tlb::run(spec, progress, stop)
    })
}

/// Times the kinds that need no pool for a few seconds, for what the host backs.
pub(super) fn host(ui: &Ui, snapshot: &Snapshot) -> Measured<Tlb> {
    measure(ui, &spec(usual(snapshot), true, snapshot)?, true)
}

/// base and thp: they need no pool. Pool pages are looked at on request.
pub(super) fn usual(snapshot: &Snapshot) -> Vec<PageKind> {
    let kinds = usual_kinds(snapshot).into_iter();
    kinds.filter(|kind| kind.pool().is_none()).collect()
}

/// What to measure on these kinds, on any CPU.
pub(super) fn spec(kinds: Vec<PageKind>, quick: bool, snapshot: &Snapshot) -> anyhow::Result<Spec> {
    let known = kinds.iter().flat_map(|&kind| known(snapshot, kind)).collect();
    Ok(Spec {
        kinds,
        quick,
        cpu: None,
        memory: Bytes(available(snapshot)?.0 / 5 * 4),
        is_emulated: snapshot
            .cpu
            .hypervisor
            .known()
            .is_some_and(|vendor| vendor.contains("TCG")),
        in_vm: is_in_vm(snapshot),
        known,
    })
}

/// Is this machine known to be a virtual one?
pub(super) fn is_in_vm(snapshot: &Snapshot) -> bool {
    snapshot.cpu.guest_of().is_some()
}

/// What CPUID and the CPU table say of a kind, to stand beside what timing finds.
fn known(snapshot: &Snapshot, kind: PageKind) -> Vec<Known> {
    let tlb = snapshot.cpu.tlb.known();
    let arrays = tlb.into_iter().flat_map(|tlb| &tlb.arrays);
    let loads = arrays.filter(|array| array.holds.loads() && array.pages.contains(&kind.x86_size()));
    let by_cpuid = loads.map(|array| Known {
        source: format!("CPUID leaf {}", array.leaf),
        kind,
        level: array.level as u8,
        entries: array.entries,
        ways: ways(array.ways, array.entries),
    });
    let by_table = row(snapshot).map(|cpu| cpu.known(kind));
    by_cpuid.chain(by_table.unwrap_or_default()).collect()
}

/// The machine's row of the CPU table.
pub(super) fn row(snapshot: &Snapshot) -> Option<&'static cpus::Cpu> {
    let cpu = &snapshot.cpu;
    cpus::of_machine(cpus::Identity {
        vendor: cpu.vendor.known().map(String::as_str),
        family: cpu.family.known().copied(),
        model: cpu.model.known().copied(),
        name: cpu.model_name.known().map(String::as_str),
    })
}

/// CPUID's ways: 0 is unknown, as many as entries is fully associative.
fn ways(ways: u32, entries: u32) -> Option<Ways> {
    match ways {
        0 => None,
        all if all == entries => Some(Ways::Full),
        count => Some(Ways::Count(count)),
    }
}
