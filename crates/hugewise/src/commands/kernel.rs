//! `hugewise measure kernel`: operations of the kernel with real processes, on pages that are given back.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail};
use host::Snapshot;
use measure::kernelops::{Program, Spec};
use model::kernelops::{KernelOps, Op};
use model::{Bytes, PageKind};

use super::measuring::{self, Measured, available, on_loan, or_usual, usual_kinds};
use super::session::Session;
use crate::cli::args;
use crate::ui::{Outcome, Ui};

pub(super) fn run(session: &mut Session<'_>, args: &args::Kernel) -> anyhow::Result<Outcome> {
    measuring::run(session.ui.look(), session, |session, snapshot| {
        let spec = spec(args, snapshot, session.seed)?;
        measure(&session.ui, &spec, args.no_pool)
    })
}

fn spec(args: &args::Kernel, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let cores = snapshot.topology.cores();
    let cores: Vec<Vec<u32>> = cores.iter().map(|core| core.iter().collect()).collect();
    let cpus = measure::kernelops::cpus(&cores).context("which CPUs may be used")?;
    let usual = if args.quick { 4 } else { 15 };
    let workers = workers(args, cpus.len() as u32);
    Ok(Spec {
        ops: ops(args, snapshot, &workers)?,
        workers,
        cpus,
        budget: args.budget.unwrap_or(Duration::from_secs(usual)),
        seed,
        available: available(snapshot)?,
        program: Program::this(),
    })
}

fn ops(args: &args::Kernel, snapshot: &Snapshot, workers: &[u32]) -> anyhow::Result<Vec<Op>> {
    let kinds = or_usual(&args.pages, || usual_kinds(snapshot));
    let (live, resident) = match args.quick {
        true => (1000, Bytes::mib(64)),
        false => (4000, Bytes::mib(256)),
    };
    let most = workers.iter().copied().max().unwrap_or(1);
    let (live, resident) = measure::kernelops::within(available(snapshot)?, most, live, resident);
    let mut ops = measure::kernelops::usual(&kinds, args.live.unwrap_or(live), args.resident.unwrap_or(resident));
    let mut names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
    names.dedup();
    if let Some(unknown) = args.ops.iter().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        bail!("--ops {unknown}: there is no such operation (write {names})");
    }
    ops.retain(|op| args.ops.is_empty() || args.ops.iter().any(|name| name == op.name()));
    Ok(ops)
}

/// As typed, or one, two, and as many as there are CPUs.
fn workers(args: &args::Kernel, cpus: u32) -> Vec<u32> {
    or_usual(&args.workers, || {
        let workers: BTreeSet<u32> = [1, 2, cpus].into_iter().filter(|&workers| workers <= cpus).collect();
        workers.into_iter().collect()
    })
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
    let is_pooled = |op: &&Op| op.kind().is_some_and(|kind| kind.pool().is_some());
    let pooled = spec.ops.iter().filter(is_pooled);
    Bytes(most * pooled.map(of).max().unwrap_or(0))
}

/// Measures. Whatever happens, borrowed pages are given back.
fn measure(ui: &Ui, spec: &Spec, no_pool: bool) -> Measured<KernelOps> {
    let kinds: BTreeSet<PageKind> = spec.ops.iter().filter_map(|op| op.kind()).collect();
    let note = format!("measuring {} operations by {:?} workers", spec.ops.len(), spec.workers);
    let wanted = kinds.into_iter().map(|kind| (kind, pool_bytes(spec)));
    on_loan(ui, no_pool, Some(&note), wanted, |progress, stop| {
        measure::kernelops::run(spec, progress, stop)
    })
}
