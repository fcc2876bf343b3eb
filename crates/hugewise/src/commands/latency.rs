//! `hugewise measure latency`: from what was typed to a measurement on pages that are given back.

use std::time::Duration;

use anyhow::bail;
use host::Snapshot;
use measure::latency::Spec;
use measure::latency::paired::Paired;
use model::latency::{Access, Latency, Pattern};
use model::{Bytes, PageKind};

use super::measuring::{self, Measured, available, cache, on_loan, or_usual, room, usual_kinds};
use super::session::Session;
use crate::cli::args;
use crate::ui::{Outcome, Ui};

/// Smallest working set of a curve: half of the smallest L1 data cache in use.
pub(super) const FROM: Bytes = Bytes::kib(16);
/// Largest working set of a curve, beyond every cache and TLB reach of base pages.
pub(super) const TO: Bytes = Bytes::gib(2);

pub(super) fn run(session: &mut Session<'_>, args: &args::Latency) -> anyhow::Result<Outcome> {
    let mut look = session.ui.look();
    look.plot = (look.plot || args.plot) && !args.no_plot;
    measuring::run(look, session, |session, snapshot| {
        let spec = typed_spec(args, snapshot, session.seed)?;
        measure(&session.ui, &spec, args.placement.no_pool)
    })
}

fn typed_spec(args: &args::Latency, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let usual = usual(snapshot, seed)?;
    let clearing = measure::latency::clearing(&usual);
    let beside = Bytes((usual.available.0 / 5 * 4).saturating_sub(clearing.0));
    Ok(Spec {
        kinds: or_usual(&args.pages, || usual.kinds),
        sizes: working_sets(args, room(snapshot)?.min(beside))?,
        patterns: args.pattern.clone(),
        accesses: args.access.clone(),
        budget: args.budget,
        cpu: args.placement.cpu,
        node: args.placement.node,
        ..usual
    })
}

/// The working sets typed, or two per doubling between the ends. `room` is the memory to stay within where the largest was not
/// typed.
fn working_sets(args: &args::Latency, room: Bytes) -> anyhow::Result<Vec<Bytes>> {
    let from = args.from.unwrap_or(FROM);
    let to = args.to.unwrap_or(TO.min(room).max(from));
    measuring::must_rise(from, to)?;
    let sizes = or_usual(&args.sizes, || measure::latency::sizes(from, to));
    if let Some(small) = sizes.iter().find(|bytes| **bytes < Bytes::kib(4)) {
        bail!("a working set of {small} is too small (write 4K or more after --sizes or --from)");
    }
    Ok(sizes)
}

/// Random reads of the usual page kinds on this machine, without a working set yet.
pub(super) fn usual(snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    let level = |level| cache(snapshot, level);
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
        private_cache: level(2),
        last_cache: (2..=4).filter_map(level).max(),
        available: available(snapshot)?,
    })
}

/// Measures, on pages borrowed from the pools unless `no_pool`. Whatever happens, the pages are given back.
pub(super) fn measure(ui: &Ui, spec: &Spec, no_pool: bool) -> Measured<Latency> {
    let note = format!("measuring {}", extent(spec));
    on_loan(ui, no_pool, Some(&note), wanted(spec), |progress, stop| {
        measure::latency::run(spec, progress, stop)
    })
}

/// A stretch of that time of what page kinds save against each other, in the same way; the first one says what it does.
pub(super) fn pair(ui: &Ui, paired: &mut Paired, time: Duration, no_pool: bool) -> Measured<()> {
    let note = paired.is_new().then(|| format!("comparing {}", extent(&paired.spec)));
    on_loan(ui, no_pool, note.as_deref(), wanted(&paired.spec), |progress, stop| {
        paired.go_on(time, progress, stop).map(|()| ((), Vec::new()))
    })
}

fn extent(spec: &Spec) -> String {
    let (kinds, sizes) = (spec.kinds.len(), spec.sizes.len());
    format!("{kinds} page kinds at {sizes} working sets")
}

/// Of each kind enough for the largest working set.
fn wanted(spec: &Spec) -> Vec<(PageKind, Bytes)> {
    let largest = spec.sizes.iter().copied().max().unwrap_or_default();
    spec.kinds.iter().map(|&kind| (kind, largest)).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use model::Bytes;

    use super::working_sets;
    use crate::cli::args::{Cli, Command, Latency, Measure};

    fn latency(words: &str) -> Latency {
        let line = format!("hugewise measure latency {words}");
        match Cli::try_parse_from(line.split_whitespace()).expect(words).command {
            Command::Measure(Measure::Latency(latency)) => latency,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn working_sets_stay_within_the_room_unless_typed() {
        let ends = |words: &str, room| {
            let sets = working_sets(&latency(words), room).expect(words);
            [sets[0], sets[sets.len() - 1]]
        };
        assert_eq!(ends("", Bytes::gib(64)), [Bytes::kib(16), Bytes::gib(2)]);
        assert_eq!(ends("", Bytes::mib(512)), [Bytes::kib(16), Bytes::mib(512)]);
        assert_eq!(ends("--to 4G", Bytes::mib(512)), [Bytes::kib(16), Bytes::gib(4)]);
        assert_eq!(ends("--from 1G", Bytes::mib(512)), [Bytes::gib(1), Bytes::gib(1)]);
        assert_eq!(ends("--sizes 64M,32K", Bytes::gib(1)), [Bytes::mib(64), Bytes::kib(32)]);
    }

    #[test]
    fn wrong_working_sets_are_told_what_to_write() {
        let refused = |words: &str| {
            working_sets(&latency(words), Bytes::gib(1))
                .expect_err(words)
                .to_string()
        };
        assert!(refused("--from 2M --to 1M").contains("--from 2M is larger than --to 1M"));
        assert!(refused("--sizes 64B").contains("too small"));
    }
}
