//! A visit on the real machine: warm the ring, find out how long a block is, time blocks until the slice is over.

use std::time::{Duration, Instant};

use chase::block::Block;
use chase::clock::CoreClock;
use chase::counters::{Counts, Pmu};
use chase::kernel::UNROLL;
use chase::order::Order;
use chase::ring::{Rings, Slot};
use model::latency::Access;

use super::arenas::Arenas;
use super::plan::Target;
use super::sampling::Visit;
use super::sweep::Bench;

/// Long enough that the two clock readings around it take no more than half as long, short enough that most blocks see no
/// interrupt. Between blocks a neighbour takes lines of the ring, which the next block has to fetch again: shorter blocks tell
/// more of him.
const BLOCK: Duration = Duration::from_micros(30);
/// Fewer blocks are no visit, whatever the slice says.
const LEAST_BLOCKS: usize = 8;
/// Steps between two looks at the time while warming.
const WARM_STEPS: u64 = 512;
/// Stretches of so many steps whose shortest tells the pace.
const PACES: u32 = 4;
/// Steps of the stretch that hardware counters count, apart from the timed ones.
const COUNTED_STEPS: u64 = 16_384;

/// The real machine.
pub(super) struct Live<'a> {
    arenas: &'a mut Arenas,
    targets: &'a [Target],
    measurable: Vec<bool>,
    seed: u64,
    clock: CoreClock,
    pmu: Result<Pmu, String>,
    begun: Instant,
}

impl<'a> Live<'a> {
    /// Points whose working set is not backed as asked are never visited.
    pub(super) fn new(arenas: &'a mut Arenas, targets: &'a [Target], seed: u64) -> Self {
        let mut backed = |target: &Target| {
            arenas
                .of(target.kind)
                .is_some_and(|held| held.prove(target.bytes).1.is_none())
        };
        let measurable = targets.iter().map(&mut backed).collect();
        Self {
            arenas,
            targets,
            measurable,
            seed,
            clock: CoreClock::new(),
            pmu: Pmu::open(),
            begun: Instant::now(),
        }
    }

    /// Why there are no hardware counters.
    pub(super) fn no_pmu(&self) -> Option<String> {
        self.pmu.as_ref().err().cloned()
    }

    fn sample(&mut self, target: Target, slice: Duration) -> Option<Visit> {
        let order = Order::new(target.pattern, target.bytes, self.seed)?;
        let field = self.arenas.of(target.kind)?.field.as_mut().ok()?;
        let slot = field.ring((target.pattern, target.bytes), &order);
        let rings = &mut field.rings;
        // Laying a ring may take longer than the slice; sampling gets its time all the same.
        let end = Instant::now() + slice;
        let steps = warm(rings, slot, target.access, order.nodes(), slice / 2);
        let mut visit = Visit::default();
        while visit.blocks.len() < LEAST_BLOCKS || Instant::now() < end {
            visit
                .blocks
                .push(Block::time(rings, slot, target.access, steps, &self.clock));
        }
        visit.counted = count(&mut self.pmu, || rings.walk(slot, target.access, COUNTED_STEPS));
        Some(visit)
    }
}

impl Bench for Live<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn visit(&mut self, point: usize, slice: Duration) -> Visit {
        if !self.measurable[point] {
            return Visit::default();
        }
        self.sample(self.targets[point], slice).unwrap_or_default()
    }
}

/// Walks one lap, or as far as the time allows, and returns how many steps fill a block.
fn warm(rings: &mut Rings, slot: Slot, access: Access, nodes: u64, time: Duration) -> u64 {
    let begun = Instant::now();
    let mut steps = 0;
    while steps < 4 * WARM_STEPS || (steps < nodes && begun.elapsed() < time) {
        rings.walk(slot, access, WARM_STEPS);
        steps += WARM_STEPS;
    }
    // Only now: the first lap is far slower than those that are timed.
    let pace = (0..PACES).map(|_| {
        let before = Instant::now();
        rings.walk(slot, access, WARM_STEPS);
        before.elapsed()
    });
    let pace = pace.min().unwrap_or_default().as_secs_f64() / WARM_STEPS as f64;
    let fitting = BLOCK.as_secs_f64() / pace.max(1e-10);
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
