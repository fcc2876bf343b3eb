//! One guest page size on one kind of memory: first touch, warming, then both sides by turns.

use std::collections::BTreeMap;
use std::time::Duration;

use chase::clock::ticks;
use chase::ring::Slot;
use model::guest::GuestPage;
use model::latency::{Access, Backed};
use model::{Bytes, NotMeasured, PageKind};
use vm::Hypervisor;
use vm::beside::{Beside, TOUCH_PAGES, Walk};
use vm::stats::Stats;

use super::field::{Field, Place, places};
use super::spec::{ROUNDS, SMALLEST, Spec};
use crate::Error;
use crate::visits::Visits;

/// Blocks this long: reading the clock is a small part, and few see an interrupt.
const BLOCK_NS: f64 = 30_000.0;
/// How much of the memory looks never used to the guest: enough faults for a median, well under a second of them.
const FRESH: Bytes = Bytes::mib(64);
/// The two sides walk the same ring at least so many steps apart, so that neither finds the other's lines in the cache.
const APART: u64 = 1 << 20;

/// One part in so many of each turn, its first, is not used: the other side's entries are in the TLB and the caches.
const WARM: usize = 4;

/// What a cell is measured with.
pub(super) struct Run<'a> {
    pub(super) hypervisor: &'a Hypervisor,
    pub(super) spec: &'a Spec,
    pub(super) page: GuestPage,
    pub(super) stop: &'a dyn Fn() -> bool,
}

/// All that was found for a guest page size on a kind of memory; times in ticks.
pub(super) struct Cell {
    pub(super) page: GuestPage,
    pub(super) kind: PageKind,
    /// For each working set: its backing, and the samples or why there are none.
    pub(super) sized: Vec<(Bytes, Backed, Result<Turns, NotMeasured>)>,
    pub(super) guest: Option<Counted>,
}

/// What one guest gave beside the latencies.
pub(super) struct Counted {
    /// Ticks per page of each touched block, in the first pass and in the second one.
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    pub(super) touched: u64,
    pub(super) touch_stats: BTreeMap<String, i64>,
    pub(super) warm_stats: BTreeMap<String, i64>,
    pub(super) timed_stats: BTreeMap<String, i64>,
    pub(super) all_stats: BTreeMap<String, i64>,
    pub(super) sanity: Turns,
}

/// Both sides by turns, in ticks per step.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) native: Visits,
    pub(super) guest: Visits,
}

impl Turns {
    /// Are both sides at rest? A ratio of one that is not would be a ratio of that moment. `candidates` is the number of sides
    /// that are asked about together.
    pub(super) fn are_at_rest(&self, candidates: usize) -> bool {
        [&self.native, &self.guest]
            .into_iter()
            .all(|side| side.moving(candidates).is_none())
    }

    /// Guest / native of each round.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let pairs = self.guest.medians.iter().zip(&self.native.medians);
        pairs.map(|(guest, native)| guest / native).collect()
    }
}

impl Cell {
    pub(super) fn measure(run: &mut Run<'_>, field: &mut Field) -> Result<Self, Error> {
        let places = places(run.spec);
        let proofs: Vec<_> = places.iter().map(|place| field.prove(place.bytes)).collect();
        let any = proofs.iter().any(|(_, why)| why.is_none());
        let mut cell = Self {
            page: run.page,
            kind: field.kind,
            sized: Vec::new(),
            guest: None,
        };
        let mut turns = match &mut field.rings {
            Ok(rings) if any => match measure(run, rings, &places) {
                Ok((turns, counted)) => {
                    cell.guest = Some(counted);
                    turns.into_iter().map(Ok).collect()
                }
                Err(Error::Vm(why @ (vm::Error::GuestPage(_) | vm::Error::Memory { .. }))) => {
                    let why = NotMeasured::Refused(why.to_string());
                    places.iter().map(|_| Err(why.clone())).collect()
                }
                Err(error) => return Err(error),
            },
            _ => Vec::new(),
        }
        .into_iter();
        for (place, (backed, why)) in places.iter().zip(proofs) {
            let measured = turns
                .next()
                .unwrap_or_else(|| Err(NotMeasured::Refused("no memory of this kind".to_owned())));
            let result = why.map_or(measured, Err);
            cell.sized.push((place.bytes, backed, result));
        }
        Ok(cell)
    }
}

fn measure(run: &Run<'_>, rings: &mut chase::ring::Rings, places: &[Place]) -> Result<(Vec<Turns>, Counted), Error> {
    let largest = places.iter().map(|place| place.bytes).max().unwrap_or_default();
    let span = largest.round_up_to(Bytes::mib(2)).0.min(rings.arena().size() as u64);
    let mut beside = Beside::new(run.hypervisor, rings, Bytes(span), run.page, FRESH)?;
    let created = beside.stats()?;
    let first = beside.touch_fresh()?;
    let touched = beside.stats()?;
    let second = beside.touch_fresh()?;
    beside.warm()?;
    for place in places {
        Error::if_stopped(run.stop)?;
        // The guest goes ahead on its ring, far enough from the native walk.
        beside.walk_guest(&Walk {
            slot: place.slot,
            access: run.spec.access,
            steps: APART.min(place.nodes / 2),
            blocks: 1,
        })?;
    }
    let warm = beside.stats()?;
    let sanity = by_turns(run, &mut beside, Slot::SCRATCH, Access::Read, Duration::from_millis(8))?;
    let turns = places
        .iter()
        .map(|place| by_turns(run, &mut beside, place.slot, run.spec.access, run.spec.slice()))
        .collect::<Result<Vec<_>, _>>()?;
    let end = beside.stats()?;
    let per_page = |ticks: Vec<u64>| {
        ticks
            .into_iter()
            .map(|ticks| ticks as f64 / TOUCH_PAGES as f64)
            .collect()
    };
    let counted = Counted {
        touched: first.len() as u64 * TOUCH_PAGES,
        first: per_page(first),
        second: per_page(second),
        touch_stats: touched.since(&created),
        warm_stats: warm.since(&Stats::default()),
        timed_stats: end.since(&warm),
        all_stats: end.since(&Stats::default()),
        sanity,
    };
    Ok((turns, counted))
}

/// Native and guest in turn, the side that begins changing from round to round.
fn by_turns(
    run: &Run<'_>,
    beside: &mut Beside<'_>,
    slot: Slot,
    access: Access,
    slice: Duration,
) -> Result<Turns, Error> {
    let walk = block(beside, slot, access, slice);
    let per_step = |ticks: Vec<u64>| -> Vec<f64> {
        let warm = ticks.len() / WARM;
        let ticks = ticks.into_iter().skip(warm);
        ticks.map(|ticks| ticks as f64 / walk.real_steps() as f64).collect()
    };
    let (mut native, mut guest) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        Error::if_stopped(run.stop)?;
        if round % 2 == 0 {
            native.push(per_step(beside.walk_native(&walk)));
        }
        guest.push(per_step(beside.walk_guest(&walk)?));
        if round % 2 == 1 {
            native.push(per_step(beside.walk_native(&walk)));
        }
    }
    Ok(Turns {
        native: native.into_iter().collect(),
        guest: guest.into_iter().collect(),
    })
}

/// A walk whose blocks take about [`BLOCK_NS`] and which takes about `slice` in all, judged by a native trial.
fn block(beside: &mut Beside<'_>, slot: Slot, access: Access, slice: Duration) -> Walk {
    let trial = Walk {
        slot,
        access,
        steps: 8192,
        blocks: 2,
    };
    let clock = chase::clock::Calibration::start();
    let begun = ticks();
    beside.walk_native(&trial);
    let ticks_per_step = (ticks() - begun) as f64 / (trial.blocks * trial.real_steps()) as f64;
    let ns = (ticks_per_step / clock.ticks_per_ns()).max(0.05);
    Walk {
        steps: ((BLOCK_NS / ns) as u64).max(64),
        blocks: (slice.as_nanos() as f64 / BLOCK_NS) as u64 + 1,
        ..trial
    }
}

/// The ring of the sanity check.
pub(super) const SANITY: Bytes = SMALLEST;
