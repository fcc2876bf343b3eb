//! Round trips out of the guest and changes to its page tables, each many times in a row.

use std::collections::BTreeMap;
use std::time::Duration;

use model::guest::GuestPage;
use vm::churn::Op;
use vm::{Config, Guest, Hypervisor, Job, Ring, payload};

use super::Error;
use crate::visits::Visits;

const DEADLINE: Duration = Duration::from_secs(60);
/// Visits to each operation, each to a new guest, in rounds through all of them.
const VISITS: u32 = stats::LEAST_VISITS as u32;
/// A sixtieth of a second for each visit at most, in ticks of a counter of a few GHz.
const TICKS: u64 = 50_000_000;
/// Ticks of one block, if an operation is shorter than that.
const BLOCK_TICKS: u64 = 150_000;
/// Blocks of a visit: enough for its median; more if they are cheap.
const BLOCKS: std::ops::RangeInclusive<u64> = 4..=40;

/// What was counted per operation.
type Counts = BTreeMap<String, f64>;

/// What a kind of operation gave.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// Does it change page tables (or else only leave the guest)?
    pub(super) churn: bool,
    /// Ticks of one operation in each block, and what was counted per operation.
    pub(super) result: Result<(Visits, Counts), String>,
}

impl Measured {
    /// Takes one more visit in. What this hypervisor cannot do is not tried again; others can be measured all the same.
    fn add(&mut self, visit: Result<(Vec<f64>, Counts), vm::Error>) -> Result<(), Error> {
        let Ok((visits, counts)) = &mut self.result else {
            return Ok(());
        };
        match visit {
            Ok((ticks, counted)) => {
                let (early, late) = ticks.split_at(ticks.len() / 2);
                visits.add(early, late);
                for (name, count) in counted {
                    *counts.entry(name).or_default() += count / f64::from(VISITS);
                }
            }
            Err(why @ (vm::Error::Faulted { .. } | vm::Error::Exit { .. } | vm::Error::Stuck(_))) => {
                self.result = Err(why.to_string());
            }
            Err(why) => return Err(why.into()),
        }
        Ok(())
    }
}

/// All operations, each visit in a guest of its own.
pub(super) fn all(hypervisor: &Hypervisor, stop: &dyn Fn() -> bool) -> Result<Vec<Measured>, Error> {
    let mut all = ASKED.map(|(name, what, load)| {
        let measured = Measured {
            name,
            what,
            churn: matches!(load, Load::Churn(_)),
            result: Ok(Default::default()),
        };
        (measured, load)
    });
    for _ in 0..VISITS {
        for (measured, load) in &mut all {
            Error::if_stopped(stop)?;
            if measured.result.is_ok() {
                measured.add(one(hypervisor, *load))?;
            }
        }
    }
    Ok(all.into_iter().map(|(measured, _)| measured).collect())
}

/// What a guest does.
#[derive(Clone, Copy)]
enum Load {
    /// Runs code that leaves it.
    Exit(fn() -> &'static [u8]),
    Churn(Op),
}

/// Stable names, after the microbenchmarks they are the core of, and what is done.
const ASKED: [(&str, &str, Load); 7] = [
    (
        "exit-to-user",
        "a store to a page that is not there: out to this program and back",
        Load::Exit(payload::ping),
    ),
    (
        "cpuid",
        "a CPUID instruction: out to the kernel and back, where the hypervisor intercepts it",
        Load::Exit(payload::cpuid),
    ),
    (
        "remap",
        "unmap a page, flush it, map it again, read it",
        Load::Churn(Op::Remap),
    ),
    (
        "nps",
        "process switch: load another root and read a page, and back (two switches)",
        Load::Churn(Op::Switch),
    ),
    (
        "segv",
        "page fault at CPL 3, guest handler, return",
        Load::Churn(Op::Fault),
    ),
    (
        "pcd",
        "create an address space of 8 pages, enter it, read them, leave and clear it",
        Load::Churn(Op::Create),
    ),
    (
        "fw",
        "fork and wait: duplicate 64 pages write-protected, one copy-on-write fault, go back and lift the protection",
        Load::Churn(Op::Duplicate),
    ),
];

fn one(hypervisor: &Hypervisor, load: Load) -> Result<(Vec<f64>, Counts), vm::Error> {
    let config = Config {
        memory: None,
        page: GuestPage::Size4K,
        fresh: 0,
        tables: None,
    };
    let mut guest = Guest::new(hypervisor, &config)?;
    let (kernel, ring, start) = match load {
        Load::Exit(code) => (guest.load(code())?, Ring::User, 0),
        Load::Churn(op) => (guest.load_churn(op)?, op.ring(), op.start(hypervisor.levels())),
    };
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
