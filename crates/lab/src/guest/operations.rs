//! Round trips out of the guest and changes to its page tables, each many times in a row.

use std::collections::BTreeMap;
use std::time::Duration;

use model::guest::GuestPage;
use vm::churn::Op;
use vm::{Config, Guest, Hypervisor, Job, Kernel, Ring, payload};

use super::Error;

const DEADLINE: Duration = Duration::from_secs(60);
/// A tenth of a second for each operation at most, in ticks of a counter of a few GHz.
const TICKS: u64 = 300_000_000;
/// Ticks of one block, if an operation is shorter than that.
const BLOCK_TICKS: u64 = 150_000;
/// Enough for a median; more if they are cheap.
const BLOCKS: std::ops::RangeInclusive<u64> = 8..=200;

/// What a kind of operation gave.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// Does it change page tables (or else only leave the guest)?
    pub(super) churn: bool,
    /// Ticks of one operation, for each block, and what was counted per operation.
    pub(super) result: Result<(Vec<f64>, BTreeMap<String, f64>), String>,
}

/// All operations, each in a guest of its own.
pub(super) fn all(hypervisor: &Hypervisor, stop: &dyn Fn() -> bool) -> Result<Vec<Measured>, Error> {
    let exits = [
        (
            "exit-to-user",
            "a store to a page that is not there: out to this program and back",
            payload::ping(),
        ),
        (
            "cpuid",
            "a CPUID instruction: out to the kernel and back, where the hypervisor intercepts it",
            payload::cpuid(),
        ),
    ];
    let mut all = Vec::new();
    for (name, what, code) in exits {
        let load = |guest: &mut Guest<'_>| guest.load(code).map(|kernel| (kernel, Ring::User, 0));
        all.push(measured(hypervisor, name, what, false, &load, stop)?);
    }
    for op in Op::ALL {
        let start = op.start(hypervisor.levels());
        let load = |guest: &mut Guest<'_>| guest.load_churn(op).map(|kernel| (kernel, op.ring(), start));
        let (name, what) = describe(op);
        all.push(measured(hypervisor, name, what, true, &load, stop)?);
    }
    Ok(all)
}

/// Stable names, after the microbenchmarks they are the core of.
fn describe(op: Op) -> (&'static str, &'static str) {
    match op {
        Op::Remap => ("remap", "unmap a page, flush it, map it again, read it"),
        Op::Switch => (
            "nps",
            "process switch: load another root and read a page, and back (two switches)",
        ),
        Op::Fault => ("segv", "page fault at CPL 3, guest handler, return"),
        Op::Create => (
            "pcd",
            "create an address space of 8 pages, enter it, read them, leave and clear it",
        ),
        Op::Duplicate => (
            "fw",
            "fork and wait: duplicate 64 pages write-protected, one copy-on-write fault, go back and lift the protection",
        ),
    }
}

type Load<'a> = dyn Fn(&mut Guest<'_>) -> Result<(Kernel, Ring, u64), vm::Error> + 'a;

fn measured(
    hypervisor: &Hypervisor,
    name: &'static str,
    what: &'static str,
    churn: bool,
    load: &Load<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Measured, Error> {
    if stop() {
        return Err(Error::Interrupted);
    }
    let result = match one(hypervisor, load) {
        Ok(result) => Ok(result),
        // This hypervisor cannot do it; others can be measured all the same.
        Err(why @ (vm::Error::Faulted { .. } | vm::Error::Exit { .. } | vm::Error::Stuck(_))) => Err(why.to_string()),
        Err(why) => return Err(why.into()),
    };
    Ok(Measured {
        name,
        what,
        churn,
        result,
    })
}

fn one(hypervisor: &Hypervisor, load: &Load<'_>) -> Result<(Vec<f64>, BTreeMap<String, f64>), vm::Error> {
    let config = Config {
        memory: None,
        page: GuestPage::Size4K,
        levels: hypervisor.levels(),
        fresh: 0,
        tables: None,
        windows: &[],
    };
    let mut guest = Guest::new(hypervisor, &config)?;
    let (kernel, ring, start) = load(&mut guest)?;
    let job = Job {
        kernel,
        ring,
        start,
        turns: 1,
        blocks: 3,
        deadline: DEADLINE,
    };
    // A trial warms the guest up and says how long one operation takes.
    let trial = guest.run(&job)?.ticks;
    let once = trial.iter().min().copied().unwrap_or(1).max(1);
    let turns = (BLOCK_TICKS / once).max(1);
    let blocks = (TICKS / (turns * once)).clamp(*BLOCKS.start(), *BLOCKS.end());
    let before = guest.stats()?;
    let done = guest.run(&Job { turns, blocks, ..job })?;
    let counted = guest.stats()?.since(&before);
    let operations = (turns * blocks) as f64;
    let ticks = done.ticks.iter().map(|&ticks| ticks as f64 / turns as f64).collect();
    let counted = counted
        .into_iter()
        .map(|(name, count)| (name, count as f64 / operations))
        .collect();
    Ok((ticks, counted))
}
