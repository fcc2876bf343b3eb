//! `hugewise measure guest`: the same rings inside a KVM guest, on pages that are given back.

use std::time::Duration;

use anyhow::{anyhow, bail};
use host::Snapshot;
use measure::Error;
use measure::guest::Spec;
use model::Bytes;
use model::guest::{Guest, GuestPage};
use model::latency::{Access, Pattern};

use super::measuring::{self, Measured, all_kinds, available, on_loan, or_usual, room, usual_kinds};
use super::session::Session;
use crate::cli::args;
use crate::ui::{Outcome, Ui};
use draw::Look;

/// Time for the timed walks of a whole matrix; with set-up, warming and operations it stays under a minute.
const BUDGET: Duration = Duration::from_secs(20);

/// Working sets, if none are typed: beyond the second-level cache, and beyond every TLB reach of base pages.
const FROM: Bytes = Bytes::mib(1);
const TO: Bytes = Bytes::gib(1);

pub(super) fn run(session: &mut Session<'_>, args: &args::Guest) -> anyhow::Result<Outcome> {
    // The matrix is the picture here.
    let look = Look {
        plot: false,
        ..session.ui.look()
    };
    measuring::run(look, session, |session, snapshot| {
        let spec = typed_spec(args, snapshot, session.seed)?;
        let measured = measure(&session.ui, &spec, args.placement.no_pool)?;
        if let Some(why) = nothing(&measured.0) {
            bail!("not-obtained: nothing of what was asked for could be measured: {why}");
        }
        Ok(measured)
    })
}

fn typed_spec(args: &args::Guest, snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
    Ok(Spec {
        guest_pages: args.guest_pages.clone(),
        kinds: or_usual(&args.pages, || all_kinds(snapshot)),
        sizes: working_sets(args, room(snapshot)?)?,
        pattern: args.pattern,
        access: args.access,
        budget: Some(args.budget.unwrap_or(BUDGET)),
        cpu: args.placement.cpu,
        node: args.placement.node,
        ..usual(snapshot, seed)?
    })
}

/// The working sets typed, or as many powers of two between the ends as can be measured, evenly apart, with both ends.
fn working_sets(args: &args::Guest, room: Bytes) -> anyhow::Result<Vec<Bytes>> {
    if !args.sizes.is_empty() {
        return Ok(args.sizes.clone());
    }
    let to = args.to.unwrap_or(TO.min(room));
    let from = args.from.unwrap_or(FROM.min(to));
    let to = if args.to.is_some() { to } else { to.max(from) };
    measuring::must_rise(from, to)?;
    let octaves = (to.0 / from.0.max(1)).max(1).ilog2();
    let step = octaves.div_ceil(measure::guest::MOST_SIZES as u32 - 1).max(1);
    let inner = (0..octaves).step_by(step as usize);
    Ok(inner.map(|octave| Bytes(from.0 << octave)).chain([to]).collect())
}

/// Random reads of the usual page kinds in guests on this machine, without a working set yet.
pub(super) fn usual(snapshot: &Snapshot, seed: u64) -> anyhow::Result<Spec> {
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
        available: available(snapshot)?,
        mmu: snapshot.kvm.mmu.clone(),
    })
}

/// Measures, on pages borrowed from the pools unless `no_pool`. Whatever happens, the pages are given back.
pub(super) fn measure(ui: &Ui, spec: &Spec, no_pool: bool) -> Measured<Guest> {
    // Before pages are borrowed for nothing.
    measure::guest::can_run().map_err(|error| coded(error.into()))?;
    let largest = spec.sizes.iter().copied().max().unwrap_or_default();
    let note = format!(
        "measuring {} guest page sizes on {} page kinds at {} working sets",
        spec.guest_pages.len(),
        spec.kinds.len(),
        spec.sizes.len()
    );
    let wanted = spec.kinds.iter();
    let wanted = wanted.map(|&kind| (kind, measure::guest::memory(largest, kind)));
    let measured = on_loan(ui, no_pool, Some(&note), wanted, |progress, stop| {
        measure::guest::run(spec, progress, stop)
    });
    measured.map_err(coded)
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
fn coded(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        None | Some(Error::Interrupted) => error,
        Some(known) => anyhow!("{}: {known}", known.code()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use model::Bytes;

    use super::working_sets;
    use crate::cli::args::{Cli, Command, Measure};

    fn sets(words: &str, room: Bytes) -> anyhow::Result<Vec<Bytes>> {
        let line = format!("hugewise measure guest {words}");
        match Cli::try_parse_from(line.split_whitespace()).expect(words).command {
            Command::Measure(Measure::Guest(guest)) => working_sets(&guest, room),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_guest_takes_a_few_working_sets_with_both_ends() {
        let known = |words: &str, room| sets(words, room).expect(words);
        assert_eq!(known("", Bytes::gib(8)), [1, 4, 16, 64, 256, 1024].map(Bytes::mib));
        assert_eq!(known("", Bytes::mib(300)).last(), Some(&Bytes::mib(300)));
        assert_eq!(known("", Bytes::kib(512)), [Bytes::kib(512)]);
        assert_eq!(known("--from 2G", Bytes::gib(1)), [Bytes::gib(2)]);
        assert_eq!(
            known("--from 16K --to 16M", Bytes::gib(1)),
            [16, 64, 256, 1024, 4096, 16384].map(Bytes::kib)
        );
        assert_eq!(
            known("--sizes 64M,32K", Bytes::gib(1)),
            [Bytes::mib(64), Bytes::kib(32)]
        );
        for (from, to) in [("16K", "2G"), ("16K", "1T"), ("1M", "4M")] {
            let words = format!("--from {from} --to {to}");
            let all = known(&words, Bytes::gib(1));
            assert!((3..=7).contains(&all.len()), "{words}: {all:?}");
            assert_eq!(all.last().copied(), to.parse().ok(), "{words}");
        }
        assert!(sets("--from 2M --to 1M", Bytes::gib(1)).is_err());
    }
}
