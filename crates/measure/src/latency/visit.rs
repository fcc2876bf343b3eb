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
use super::spec::Spec;
use super::sweep::Bench;

/// Long enough that the two clock readings around it take no more than half as long, short enough that most blocks see no
/// interrupt.
const BLOCK: Duration = Duration::from_micros(30);
/// The same beyond the private cache: between blocks others take lines of the ring, so the share of time between them is
/// kept small.
const LARGE_BLOCK: Duration = Duration::from_micros(120);
/// Fewer blocks are no walk, whatever time it has.
const LEAST_BLOCKS: usize = 8;
/// Steps of a warm-up between two questions whether to stop.
const UNASKED_STEPS: u64 = 1 << 18;
/// Steps of a stretch by which the pace is found.
const PACE_STEPS: u64 = 512;
/// Stretches of so many steps whose shortest shows the pace.
const PACES: u32 = 4;
/// Steps of the stretch that hardware counters count, apart from the timed ones.
const COUNTED_STEPS: u64 = 16_384;
/// A line comes up once in a lap, so what the last level keeps of a ring shows after whole laps only. A ring of up to so many
/// times its lines is warmed up by so many laps. What it keeps of larger rings is too little to show.
const LAPS: [(u64, u64); 2] = [(4, 2), (8, 1)];

/// The caches that decide how long a warm-up has to be, and what a cold approach has to clear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caches {
    /// Of a core alone.
    pub(super) private: Option<Bytes>,
    pub(super) last: Option<Bytes>,
}

impl Caches {
    /// The last level where the machine does not report its size. If it is larger, warm-ups that are too short show it
    /// by a fall, and are made longer.
    const USUAL: Bytes = Bytes::mib(64);

    pub(super) fn of(spec: &Spec) -> Self {
        Self {
            private: spec.private_cache,
            last: spec.last_cache,
        }
    }

    fn last(&self) -> Bytes {
        self.last.unwrap_or(Self::USUAL)
    }

    /// Memory whose lines replace most of what is in the last level, and never so much that it hurts.
    pub(super) fn clearing(&self) -> Bytes {
        Bytes(self.last().0 / 2 * 3).min(Bytes::mib(768))
    }

    fn is_large(&self, bytes: Bytes) -> bool {
        self.private.is_none_or(|private| bytes > private)
    }

    /// Laps of the warm-up of a ring of which the last level may keep a share from lap to lap; `None` for larger ones.
    fn laps(&self, nodes: u64) -> Option<u64> {
        let fits = |&&(times, _): &&(u64, u64)| nodes <= times * (self.last().0 / LINE);
        LAPS.iter().find(fits).map(|&(_, laps)| laps)
    }

    /// Steps of the parallel warm-up before a visit to a ring of so many nodes.
    pub(super) fn steps(&self, nodes: u64, approach: Approach) -> u64 {
        let whole = self.laps(nodes).map_or(self.last().0 / LINE, |laps| laps * nodes);
        let steps = match approach {
            Approach::Cold => 0,
            Approach::Warm { boost } => whole.saturating_mul(boost.into()),
            Approach::Half { boost } => whole.saturating_mul(boost.into()) / 2,
        };
        steps.next_multiple_of(UNROLL)
    }

    /// Steps of the shortest warm-up: what fills the last level, or the two laps after which a ring that is not much larger finds in it
    /// what it always will. Half of them leave it without hits, and a saving is then a share of more.
    pub(super) fn soon(&self, nodes: u64) -> u64 {
        let [(times, laps), _] = LAPS;
        let last = self.last().0 / LINE;
        let steps = if nodes <= times * last { laps * nodes } else { last };
        steps.next_multiple_of(UNROLL)
    }

    /// Of how many laps so many steps are; endless for a ring of which nothing is kept from lap to lap.
    pub(super) fn share_of_lap(&self, nodes: u64, steps: u64) -> f64 {
        self.laps(nodes).map_or(f64::INFINITY, |_| steps as f64 / nodes as f64)
    }
}

/// The real machine.
pub(super) struct Live<'a> {
    arenas: &'a mut Arenas,
    targets: &'a [Target],
    stop: &'a dyn Fn() -> bool,
    measurable: Vec<bool>,
    seed: u64,
    clock: CoreClock,
    pmu: Result<Pmu, String>,
    begun: Instant,
    caches: Caches,
    /// Memory that is read to take a ring out of all caches; none before the first cold approach.
    elsewhere: Vec<u8>,
    /// The ring that is visited, and its steps in a block.
    slots: Vec<Option<(Slot, u64)>>,
    visits: u64,
}

impl<'a> Live<'a> {
    /// Points whose working set is not backed as asked are never visited.
    pub(super) fn new(arenas: &'a mut Arenas, targets: &'a [Target], spec: &Spec, stop: &'a dyn Fn() -> bool) -> Self {
        let mut backed = |target: &Target| {
            let held = arenas.of(target.kind).filter(|_| !stop());
            held.is_some_and(|held| held.prove(target.bytes).1.is_none())
        };
        let measurable = targets.iter().map(&mut backed).collect();
        Self {
            arenas,
            targets,
            stop,
            measurable,
            seed: spec.seed,
            clock: CoreClock::new(),
            pmu: Pmu::open(),
            begun: Instant::now(),
            caches: Caches::of(spec),
            elsewhere: Vec::new(),
            slots: vec![None; targets.len()],
            visits: 0,
        }
    }

    /// Why there are no hardware counters.
    pub(super) fn no_pmu(&self) -> Option<String> {
        self.pmu.as_ref().err().cloned()
    }

    fn rings(&mut self, point: usize) -> Option<&mut Rings> {
        let held = self.arenas.of(self.targets[point].kind)?;
        held.field.as_mut().ok().map(|field| &mut field.rings)
    }

    /// Finds the ring, or lays it; then its first visit's pace says how many steps fill a block.
    fn begin(&mut self, point: usize, is_cold: bool, steps: impl Fn(&Caches, u64) -> u64) -> Option<()> {
        let target = self.targets[point];
        let order = Order::new(target.pattern, target.bytes, self.seed)?;
        self.visits += 1;
        let draw = self.seed ^ self.visits << 32;
        let field = self.arenas.of(target.kind)?.field.as_mut().ok()?;
        let slot = field.ring((target.pattern, target.bytes), &order, draw, self.stop)?;
        let steps = steps(&self.caches, order.nodes());
        if is_cold {
            self.clear(target.bytes);
        }
        self.preload(point, slot, steps)?;
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

    /// Enters a point after the shortest warm-up that kinds compared with each other need.
    pub(super) fn enter_soon(&mut self, point: usize) -> bool {
        self.measurable[point] && self.begin(point, false, Caches::soon).is_some()
    }

    /// The parallel warm-up; `None` if it was stopped.
    fn preload(&mut self, point: usize, slot: Slot, steps: u64) -> Option<()> {
        let (access, stop) = (self.targets[point].access, self.stop);
        let rings = self.rings(point)?;
        let mut left = steps;
        while left > 0 {
            if stop() {
                return None;
            }
            let part = left.min(UNASKED_STEPS);
            rings.preload(slot, access, part);
            left -= part;
        }
        Some(())
    }

    /// Reads other memory until nothing of a ring is left in the caches that could hold it.
    fn clear(&mut self, bytes: Bytes) {
        if self.elsewhere.is_empty() {
            // Written, or all of it would be the one page of zeros.
            self.elsewhere = vec![1; self.caches.clearing().as_usize()];
        }
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
        let steps = |caches: &Caches, nodes| caches.steps(nodes, approach);
        self.measurable[point] && self.begin(point, approach.is_cold(), steps).is_some()
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

    fn laps(&self, point: usize, blocks: usize) -> f64 {
        let target = self.targets[point];
        let order = Order::new(target.pattern, target.bytes, self.seed);
        let (Some(order), Some((_, steps))) = (order, self.slots[point]) else {
            return f64::INFINITY;
        };
        self.caches.share_of_lap(order.nodes(), steps * blocks as u64)
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
