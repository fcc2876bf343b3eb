//! `hugewise measure kernel`: operations of the kernel with real processes, on pages that are given back.

use std::time::Duration;

use anyhow::{Context, bail};
use host::Snapshot;
use measure::kernelops::{Program, Spec};
use model::kernelops::{KernelOps, Op};
use model::{Bytes, PageKind};

use super::Desk;
use super::measuring::{self, Measured, available, on_loan, page_sizes, usual_kinds};
use super::stop::Stop;
use crate::cli::typed;
use crate::ui::{Outcome, Ui};

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Kernel) -> anyhow::Result<Outcome> {
    measuring::run(desk.ui.look(), desk, |desk, snapshot, stop| {
        let spec = spec(typed, snapshot, desk.seed)?;
        measure(&desk.ui, stop, &spec, typed.no_pool)
    })
}

fn spec(typed: &typed::Kernel, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let cores: Vec<Vec<u32>> = snapshot
        .topology
        .cores()
        .iter()
        .map(|core| core.iter().collect())
        .collect();
    let cpus = measure::kernelops::cpus(&cores).context("which CPUs may be used")?;
    let usual = if typed.quick { 4 } else { 15 };
    let (base_page, pmd_page) = page_sizes(snapshot)?;
    Ok(Spec {
        ops: ops(typed, snapshot)?,
        workers: workers(typed, cpus.len() as u32),
        cpus,
        budget: typed.budget.unwrap_or(Duration::from_secs(usual)),
        seed,
        base_page,
        pmd_page,
        available: available(snapshot)?,
        program: Program::this(),
    })
}

fn ops(typed: &typed::Kernel, snapshot: &Snapshot) -> anyhow::Result<Vec<Op>> {
    let kinds = if typed.pages.is_empty() {
        usual_kinds(snapshot)
    } else {
        typed.pages.clone()
    };
    let (live, resident) = if typed.quick {
        (1000, Bytes::mib(64))
    } else {
        (4000, Bytes::mib(256))
    };
    let mut ops = measure::kernelops::usual(&kinds, typed.live.unwrap_or(live), typed.resident.unwrap_or(resident));
    let mut names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
    names.dedup();
    if let Some(unknown) = typed.ops.iter().find(|name| !names.contains(&name.as_str())) {
        bail!(
            "--ops {unknown}: there is no such operation (write {})",
            names.join(", ")
        );
    }
    ops.retain(|op| typed.ops.is_empty() || typed.ops.iter().any(|name| name == op.name()));
    Ok(ops)
}

/// As typed, or one, two, and as many as there are CPUs.
fn workers(typed: &typed::Kernel, cpus: u32) -> Vec<u32> {
    if typed.workers.is_empty() {
        let mut workers = vec![1, 2, cpus];
        workers.retain(|&workers| workers <= cpus);
        workers.sort_unstable();
        workers.dedup();
        workers
    } else {
        typed.workers.clone()
    }
}

/// What all workers together take from the pools at the most.
fn pool_bytes(spec: &Spec) -> Bytes {
    let most = u64::from(spec.workers.iter().copied().max().unwrap_or(1));
    let of = |op: &Op| match *op {
        Op::FwResident { bytes, .. } => bytes.0,
        // The pages that faults go round in.
        Op::AnonWrite { kind } => 16 * kind.pool().map_or(0, |page| page.0),
        _ => 0,
    };
    let pooled = spec
        .ops
        .iter()
        .filter(|op| op.kind().is_some_and(|kind| kind.pool().is_some()));
    Bytes(most * pooled.map(of).max().unwrap_or(0))
}

/// Measures; `None` if the user stopped it. Whatever happens, borrowed pages are given back.
fn measure(ui: &Ui, stop: &Stop, spec: &Spec, no_pool: bool) -> Measured<KernelOps> {
    let mut kinds: Vec<PageKind> = spec.ops.iter().filter_map(|op| op.kind()).collect();
    kinds.sort();
    kinds.dedup();
    ui.note(&format!(
        "measuring {} operations by {:?} workers",
        spec.ops.len(),
        spec.workers
    ));
    let wanted = kinds.into_iter().map(|kind| (kind, pool_bytes(spec)));
    on_loan(ui, stop, no_pool, wanted, |progress, stop| {
        measure::kernelops::run(spec, progress, stop)
    })
}
