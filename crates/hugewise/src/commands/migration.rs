//! `hugewise measure migration`: what a move to another CPU costs, by how far it goes and how much memory the thread uses.

use std::time::Duration;

use anyhow::{Context, bail};
use host::{Distances, Snapshot};
use measure::migration::{Spec, pairs};
use model::migration::Migration;
use model::placement::Kind;
use model::{Bytes, Warning};

use super::measuring::{self, available, cache, or_usual, room};
use super::session::Session;
use crate::cli::args;
use crate::render::prove::placement::guest_warning;
use crate::stop;
use crate::ui::Outcome;

/// Where the size of the last-level cache is not known.
const USUAL_LAST: Bytes = Bytes::mib(16);
const USUAL_L2: Bytes = Bytes::kib(512);
/// Memory for loads that miss all caches, at most: many caches are shared by CPUs that are not measured.
const MOST_BEYOND: Bytes = Bytes::mib(256);
/// Beyond that a pass takes milliseconds, and the cost of a move is lost in it.
const LARGEST: Bytes = Bytes::mib(64);
/// The same where seconds count.
const LARGEST_QUICK: Bytes = Bytes::mib(4);

pub(super) fn run(session: &mut Session<'_>, args: &args::Migration) -> anyhow::Result<Outcome> {
    measuring::run(session.ui.look(), session, |session, snapshot| {
        let spec = spec(args, snapshot, session.seed)?;
        session.ui.note("measuring what a move to another CPU costs");
        let measured = measure::migration::run(&spec, &mut session.ui.progress(), &stop::is_asked);
        let (migration, mut warnings) = measured?;
        warnings.extend(topology(snapshot, &migration));
        Ok((migration, warnings))
    })
}

fn spec(args: &args::Migration, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let allowed = measure::kernelops::cpus(&[]).context("which CPUs may be used")?;
    if let Some(cpu) = args.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        bail!("--cpus {cpu}: this CPU is offline, or this process may not use it");
    }
    let mut cpus = or_usual(&args.cpus, || allowed);
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < 2 {
        bail!("fewer than two CPUs may be used: a move needs another one");
    }
    let usual = if args.quick { 4 } else { 20 };
    Ok(Spec {
        kinds: pairs(&cpus, &Distances::of(&snapshot.topology), seed),
        sizes: sizes(args, snapshot)?,
        page: args.pages,
        // Half of L2, as siblings share it.
        in_l2: Bytes(cache(snapshot, 2).unwrap_or(USUAL_L2).0 / 2),
        beyond: beyond(snapshot)?,
        is_quick: args.quick,
        budget: args.budget.unwrap_or(Duration::from_secs(usual)),
        seed,
    })
}

/// Four times the last-level cache, if that is little of what is available.
fn beyond(snapshot: &Snapshot) -> anyhow::Result<Bytes> {
    let last = (3..=4).filter_map(|level| cache(snapshot, level)).max();
    let beyond = Bytes(last.unwrap_or(USUAL_LAST).0 * 4).min(MOST_BEYOND);
    Ok(beyond.min(Bytes(available(snapshot)?.0 / 16)))
}

/// As typed, or from 16K by factors of four up to the last-level cache.
fn sizes(args: &args::Migration, snapshot: &Snapshot) -> anyhow::Result<Vec<Bytes>> {
    // With their page tables and rings they take half of memory at most.
    let most = room(snapshot)?;
    let mut sizes = args.sizes.clone();
    if sizes.is_empty() {
        let last = (2..=4).filter_map(|level| cache(snapshot, level)).max();
        let largest = if args.quick { LARGEST_QUICK } else { LARGEST };
        let last = last.unwrap_or(USUAL_LAST).min(largest);
        let fits = |&bytes: &Bytes| bytes <= last;
        let all = std::iter::successors(Some(Bytes::kib(16)), |bytes| Some(Bytes(bytes.0 * 4)));
        sizes = all.take_while(fits).collect();
        // The last level itself, unless a size is near it.
        if sizes.last().is_some_and(|largest| largest.0 * 2 <= last.0) {
            sizes.push(last);
        }
    }
    let all: Bytes = sizes.iter().copied().sum();
    if all > most {
        bail!("--sizes: all sizes together are {all}, and {most} may be taken (a quarter of available memory)");
    }
    if let Some(small) = sizes.iter().find(|bytes| **bytes < Bytes::kib(4)) {
        bail!("--sizes {small}: write 4K or more");
    }
    Ok(sizes)
}

/// The topology of a guest is what its hypervisor shows.
fn topology(snapshot: &Snapshot, migration: &Migration) -> Vec<Warning> {
    let unknown = migration.kinds.iter().any(|moves| moves.kind == Kind::Unknown);
    let text = "the topology of some CPUs could not be read: their moves are of kind unknown";
    let unknown = unknown.then(|| Warning::new("unknown-topology", text));
    guest_warning(snapshot).into_iter().chain(unknown).collect()
}
