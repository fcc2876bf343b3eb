//! Rings about as large as the last-level cache, on simulated caches: a line comes up once in a lap, so a cold cache shows
//! nothing of what a long walk keeps before a whole lap is over.

use std::sync::LazyLock;
use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use chase::order::LINE;
use model::latency::{Access, Pattern};
use model::{Bytes, PageKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::converge::Approach;
use super::plan::Target;
use super::sampling::Samples;
use super::sweep::{Bench, Sweep};
use super::visit::Caches;

/// Lines of the simulated last-level cache.
const LINES: usize = 1 << 17;
/// Nanoseconds of a step that hits and of one that misses.
const COSTS: [f64; 2] = [60.0, 180.0];
/// Loads of a parallel warm-up take so much less time.
const PARALLEL: f64 = 8.0;
const BLOCK: usize = 512;
const EMPTY: u32 = u32::MAX;

/// Which line makes room.
#[derive(Clone, Copy, Debug)]
enum Replacement {
    Random,
    Lru,
}

/// A fully associative cache of one ring's lines.
struct Cache {
    replacement: Replacement,
    slots: Vec<u32>,
    is_held: Vec<bool>,
    /// The slot that was filled longest ago; in a tour this is the least recently used one, for a hit comes in the same order.
    oldest: usize,
    random: Pcg64Mcg,
}

impl Cache {
    fn new(replacement: Replacement, nodes: usize) -> Self {
        Self {
            replacement,
            slots: vec![EMPTY; LINES],
            is_held: vec![false; nodes],
            oldest: 0,
            random: Pcg64Mcg::seed_from_u64(5),
        }
    }

    fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.is_held.fill(false);
    }

    /// Loads a line, and returns what it costs.
    fn load(&mut self, node: usize) -> f64 {
        if std::mem::replace(&mut self.is_held[node], true) {
            return COSTS[0];
        }
        let free = self.slots.len();
        let slot = match self.replacement {
            Replacement::Random => self.random.random_range(0..free),
            Replacement::Lru => {
                self.oldest = (self.oldest + 1) % free;
                self.oldest
            }
        };
        let out = std::mem::replace(&mut self.slots[slot], node as u32);
        if out != EMPTY {
            self.is_held[out as usize] = false;
        }
        COSTS[1]
    }
}

/// One ring, whose lines other points take out of the cache between its visits.
struct Ring {
    cache: Cache,
    caches: Caches,
    nodes: usize,
    at: usize,
    now: f64,
}

impl Ring {
    fn new(replacement: Replacement, nodes: usize) -> Self {
        Self {
            cache: Cache::new(replacement, nodes),
            caches: Caches {
                private: Some(Bytes::kib(512)),
                last: Some(Bytes(LINES as u64 * LINE)),
            },
            nodes,
            at: 0,
            now: 0.0,
        }
    }

    /// The tour is in order of its nodes here: no prefetcher looks.
    fn go(&mut self, steps: usize) -> f64 {
        let cost = (0..steps).map(|_| {
            self.at = (self.at + 1) % self.nodes;
            self.cache.load(self.at)
        });
        cost.sum()
    }
}

/// The mean of a lap after many, of rings of some eighths of the cache.
static TRUTHS: LazyLock<Vec<(Replacement, usize, f64)>> = LazyLock::new(|| {
    let truth = |replacement: Replacement, laps: usize| {
        [2, 6, 8, 10, 12, 16, 24, 32, 64, 96].map(|eighths| {
            let nodes = LINES / 8 * eighths;
            let mut ring = Ring::new(replacement, nodes);
            ring.go(laps * nodes);
            (replacement, eighths, ring.go(nodes) / nodes as f64)
        })
    };
    // Under LRU the second lap is as any other.
    [truth(Replacement::Random, 8), truth(Replacement::Lru, 1)].concat()
});

impl Bench for Ring {
    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn enter(&mut self, _: usize, approach: Approach) -> bool {
        self.cache.clear();
        let steps = self.caches.steps(self.nodes as u64, approach);
        self.now += 1e-9 * self.go(steps as usize) / PARALLEL;
        true
    }

    fn walk(&mut self, _: usize, time: Duration) -> Vec<Block> {
        let end = self.now + time.as_secs_f64();
        let mut blocks = Vec::new();
        while self.now < end {
            let cost = self.go(BLOCK);
            self.now += 1e-9 * cost;
            blocks.push(Block {
                ticks: cost / BLOCK as f64,
                clock: [1.0, 1.0],
                switched: false,
                migrated: false,
            });
        }
        blocks
    }

    fn laps(&self, _: usize, blocks: usize) -> f64 {
        self.caches.share_of_lap(self.nodes as u64, (BLOCK * blocks) as u64)
    }

    fn leave(&mut self, _: usize) -> Option<(Counts, u64)> {
        None
    }
}

fn swept(replacement: Replacement, nodes: usize, budget: Duration) -> Samples {
    let target = Target {
        kind: PageKind::Thp,
        pattern: Pattern::RandomLine,
        access: Access::Read,
        bytes: Bytes(nodes as u64 * LINE),
    };
    let sweep = Sweep {
        points: &[target],
        budget,
        seed: 3,
    };
    let mut bench = Ring::new(replacement, nodes);
    let mut sampled = sweep.run(&mut bench, &mut (), &|| false).expect("runs");
    sampled.samples.remove(0)
}

#[test]
fn what_a_long_walk_keeps_in_the_last_level_is_found_or_lies_inside_the_bound() {
    let (mut wrong, mut numbers) = (Vec::new(), 0);
    for &(replacement, eighths, truth) in &*TRUTHS {
        let samples = swept(replacement, LINES / 8 * eighths, Duration::from_millis(350));
        let at = (replacement, eighths as f64 / 8.0, truth);
        match (samples.ticks(), samples.bound()) {
            (Some(ticks), None) => {
                numbers += 1;
                if (ticks.median / truth - 1.0).abs() > 0.03 {
                    wrong.push(format!("{at:?} {ticks:?} {:?}", samples.arrivals.convergence()));
                }
            }
            (None, Some(bound)) => {
                let holds = bound.low.is_none_or(|low| low <= truth) && bound.high.is_none_or(|high| truth <= high);
                if !holds {
                    wrong.push(format!("{at:?} {bound:?} {:?}", samples.arrivals.convergence()));
                }
            }
            other => panic!("a number or a bound: {other:?}"),
        }
    }
    assert!(wrong.is_empty(), "{numbers} numbers; wrong: {wrong:#?}");
    assert!(numbers >= 16, "{numbers} numbers");
}

/// A saving is a share of a step, so a step that lacks the hits of a long walk makes it smaller than it is.
#[test]
fn after_the_shortest_warm_up_a_step_costs_what_it_does_in_a_long_walk() {
    // Rings that hardly exceed the cache take many laps to lose what they lose.
    let others = TRUTHS.iter().filter(|(_, eighths, _)| ![8, 10].contains(eighths));
    for &(replacement, eighths, truth) in others {
        let nodes = LINES / 8 * eighths;
        let mut ring = Ring::new(replacement, nodes);
        ring.go(ring.caches.soon(nodes as u64) as usize);
        ring.walk(0, Duration::from_millis(15));
        let blocks = ring.walk(0, Duration::from_millis(35));
        let mean = blocks.iter().map(|block| block.ticks).sum::<f64>() / blocks.len() as f64;
        assert!(
            (mean / truth - 1.0).abs() < 0.05,
            "{replacement:?}, {eighths} eighths: {mean} for {truth}"
        );
    }
}
