//! A visit on the real machine: approach a ring cold or after a parallel warm-up, then walk it in timed blocks.

use std::time::{Duration, Instant};

use chase::block::Block;
use chase::clock::CoreClock;
use chase::counters::{Counts, Pmu};
use chase::kernel::UNROLL;
use chase::order::{LINE, Order};
use chase::ring::{Rings, Slot};
use model::Bytes;
use model::latency::Access;

use super::arenas::Arenas;
use super::converge::Approach;
use super::plan::Target;
use super::sweep::Bench;

/// Long enough that the two clock readings around it take no more than half as long, short enough that most blocks see no
/// interrupt.
const BLOCK: Duration = Duration::from_micros(30);
/// The same beyond the private cache: between blocks others take lines of the ring, so the share of time between them is
/// kept small.
const LARGE_BLOCK: Duration = Duration::from_micros(120);
/// Fewer blocks are no walk, whatever time it has.
const LEAST_BLOCKS: usize = 8;
/// Steps of a stretch by which the pace is found.
const PACE_STEPS: u64 = 512;
/// Stretches of so many steps whose shortest tells the pace.
const PACES: u32 = 4;
/// Steps of the stretch that hardware counters count, apart from the timed ones.
const COUNTED_STEPS: u64 = 16_384;
/// A warm-up of so many laps leaves a ring that fits into a cache in it.
const LAPS: u64 = 2;

/// The caches that decide how long a warm-up has to be, and what a cold approach has to clear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caches {
    /// Of a core alone.
    pub(super) private: Option<Bytes>,
    /// The last level.
    pub(super) last: Option<Bytes>,
}

impl Caches {
    /// A machine that does not tell has a last level of this size here; if it is larger, warm-ups that are too short
    /// show it by a fall, and are made longer.
    const USUAL: Bytes = Bytes::mib(64);

    fn last(&self) -> Bytes {
        self.last.unwrap_or(Self::USUAL)
    }

    /// Memory whose lines replace most of what is in the last level, and never so much that it hurts.
    fn clearing(&self) -> Bytes {
        Bytes(self.last().0 / 2 * 3).min(Bytes::mib(768))
    }

    fn is_large(&self, bytes: Bytes) -> bool {
        self.private.is_none_or(|private| bytes > private)
    }

    /// As many lines as the last level holds leave nothing of what was there before; a small ring is full after fewer.
    fn warm_up(&self, order: &Order, boost: u32) -> u64 {
        let fills = (self.last().0 / LINE).saturating_mul(u64::from(boost));
        fills.min(order.nodes() * LAPS).next_multiple_of(UNROLL)
    }
}

/// The real machine.
pub(super) struct Live<'a> {
    arenas: &'a mut Arenas,
    targets: &'a [Target],
    measurable: Vec<bool>,
    seed: u64,
    clock: CoreClock,
    pmu: Result<Pmu, String>,
    begun: Instant,
    caches: Caches,
    /// Memory that is read to take a ring out of all caches.
    elsewhere: Vec<u8>,
    /// The ring that is visited, and its steps in a block.
    slots: Vec<Option<(Slot, u64)>>,
    visits: u64,
}

impl<'a> Live<'a> {
    /// Points whose working set is not backed as asked are never visited.
    pub(super) fn new(arenas: &'a mut Arenas, targets: &'a [Target], caches: Caches, seed: u64) -> Self {
        let mut backed = |target: &Target| {
            arenas
                .of(target.kind)
                .is_some_and(|held| held.prove(target.bytes).1.is_none())
        };
        let measurable = targets.iter().map(&mut backed).collect();
        // Written, or all of it would be the one page of zeros.
        let elsewhere = vec![1; caches.clearing().as_usize()];
        Self {
            arenas,
            targets,
            measurable,
            seed,
            clock: CoreClock::new(),
            pmu: Pmu::open(),
            begun: Instant::now(),
            caches,
            elsewhere,
            slots: vec![None; targets.len()],
            visits: 0,
        }
    }

    /// Why there are no hardware counters.
    pub(super) fn no_pmu(&self) -> Option<String> {
        self.pmu.as_ref().err().cloned()
    }

    fn rings(&mut self, point: usize) -> Option<&mut Rings> {
        let field = self.arenas.of(self.targets[point].kind)?.field.as_mut().ok()?;
        Some(&mut field.rings)
    }

    /// Finds the ring, or lays it; then its first visit's pace says how many steps fill a block.
    fn begin(&mut self, point: usize, approach: Approach) -> Option<()> {
        let target = self.targets[point];
        let order = Order::new(target.pattern, target.bytes, self.seed)?;
        self.visits += 1;
        let draw = self.seed ^ self.visits << 32;
        let field = self.arenas.of(target.kind)?.field.as_mut().ok()?;
        let slot = field.ring((target.pattern, target.bytes), &order, draw);
        let steps = match approach {
            Approach::Cold => 0,
            Approach::Warm { boost } => self.caches.warm_up(&order, boost),
        };
        if approach == Approach::Cold {
            self.clear(target.bytes);
        }
        self.rings(point)?.preload(slot, target.access, steps);
        let steps = match self.slots[point] {
            Some((_, steps)) => steps,
            None => {
                let block = if self.caches.is_large(target.bytes) {
                    LARGE_BLOCK
                } else {
                    BLOCK
                };
                steps_of(block, self.rings(point)?, slot, target.access)
            }
        };
        self.slots[point] = Some((slot, steps));
        Some(())
    }

    /// Reads other memory until nothing of a ring is left in the caches that could hold it.
    fn clear(&self, bytes: Bytes) {
        let enough = match self.caches.private {
            Some(private) if bytes <= private => 2 * private.as_usize(),
            _ => self.elsewhere.len(),
        };
        let lines = self.elsewhere.iter().take(enough).step_by(LINE as usize);
        std::hint::black_box(lines.fold(0u8, |sum, &byte| sum.wrapping_add(byte)));
    }
}

impl Bench for Live<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn enter(&mut self, point: usize, approach: Approach) -> bool {
        self.measurable[point] && self.begin(point, approach).is_some()
    }

    fn walk(&mut self, point: usize, time: Duration) -> Vec<Block> {
        let access = self.targets[point].access;
        let (Some((slot, steps)), clock) = (self.slots[point], self.clock) else {
            return Vec::new();
        };
        let Some(rings) = self.rings(point) else {
            return Vec::new();
        };
        let end = Instant::now() + time;
        let mut blocks = Vec::new();
        while blocks.len() < LEAST_BLOCKS || Instant::now() < end {
            blocks.push(Block::time(rings, slot, access, steps, &clock));
        }
        blocks
    }

    fn leave(&mut self, point: usize) -> Option<(Counts, u64)> {
        let access = self.targets[point].access;
        let (slot, _) = self.slots[point]?;
        let field = self.arenas.of(self.targets[point].kind)?.field.as_mut().ok()?;
        count(&mut self.pmu, || field.rings.walk(slot, access, COUNTED_STEPS))
    }
}

/// How many steps fill a block at the present pace.
fn steps_of(block: Duration, rings: &mut Rings, slot: Slot, access: Access) -> u64 {
    let pace = (0..PACES).map(|_| {
        let before = Instant::now();
        rings.walk(slot, access, PACE_STEPS);
        before.elapsed()
    });
    let pace = pace.min().unwrap_or_default().as_secs_f64() / PACE_STEPS as f64;
    let fitting = block.as_secs_f64() / pace.max(1e-10);
    (fitting as u64).next_multiple_of(UNROLL).clamp(UNROLL, 1 << 20)
}

/// Counts a stretch of its own, so that reading clocks is not counted too. Counters that fail once are not asked again.
fn count(pmu: &mut Result<Pmu, String>, stretch: impl FnOnce()) -> Option<(Counts, u64)> {
    match pmu.as_mut().ok()?.count(stretch) {
        Ok(counts) => Some((counts, COUNTED_STEPS)),
        Err(why) => {
            *pmu = Err(why);
            None
        }
    }
}
