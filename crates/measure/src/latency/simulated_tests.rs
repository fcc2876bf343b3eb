//! The sweep on a machine made of arithmetic, whose caches take time to fill and are taken away: is the truth where it says?

use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use model::latency::{Access, Pattern};
use model::{Bytes, PageKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::converge::Approach;
use super::plan::Target;
use super::sampling::Samples;
use super::sweep::{Bench, Sweep};

/// What a simulated machine is like.
#[derive(Clone, Copy, Debug)]
struct Nature {
    /// Seconds of walking in which 1 - 1/e of a point's state returns.
    returns: f64,
    /// How much of the state others take in a second, relative to what the walk brings: 1 takes as fast as it returns.
    theft: f64,
    /// What a step without any state costs more, as a share.
    penalty: f64,
    /// Standard deviation between visits, as a share.
    between: f64,
    /// Change of everything in a second, as a share.
    drift: f64,
}

const CALM: Nature = Nature {
    returns: 0.1,
    theft: 0.0,
    penalty: 0.6,
    between: 0.0,
    drift: 0.0,
};
/// Ticks of a step with all of its state.
const BASE: f64 = 200.0;
const BLOCK: f64 = 60e-6;
/// A warm-up is so much faster than a walk, and brings so many times what is missing down by e.
const WARM_UP: (f64, f64) = (8.0, 4.0);
/// Seconds elsewhere that take a point's state down by e.
const ELSEWHERE: f64 = 0.01;

impl Nature {
    /// The share of its state that a long walk keeps.
    fn kept(&self) -> f64 {
        1.0 / (1.0 + self.theft)
    }

    fn truth(&self, middle: f64) -> f64 {
        BASE * (1.0 + self.penalty * (1.0 - self.kept())) * (1.0 + self.drift * middle)
    }
}

struct Simulated {
    nature: Nature,
    now: f64,
    state: Vec<(f64, f64)>,
    /// When each point was first and last visited.
    spans: Vec<(f64, f64)>,
    level: f64,
    random: Pcg64Mcg,
}

impl Simulated {
    fn new(nature: Nature, points: usize, seed: u64) -> Self {
        Self {
            nature,
            now: 0.0,
            state: vec![(0.0, 0.0); points],
            spans: vec![(f64::INFINITY, 0.0); points],
            level: 1.0,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..4).map(|_| self.random.random::<f64>()).sum();
        (sum - 2.0) * 3.0_f64.sqrt()
    }

    fn block(&mut self, state: f64) -> Block {
        let Nature { penalty, drift, .. } = self.nature;
        let noise = 1.0 + 0.03 * self.normal();
        Block {
            ticks: BASE * (1.0 + penalty * (1.0 - state)) * self.level * (1.0 + drift * self.now) * noise,
            clock: [1.0, 1.0],
            switched: false,
            migrated: false,
        }
    }
}

impl Bench for Simulated {
    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn enter(&mut self, point: usize, approach: Approach) -> bool {
        let Nature { returns, between, .. } = self.nature;
        let (mut state, left) = self.state[point];
        state *= (-(self.now - left) / ELSEWHERE).exp();
        if approach.is_cold() {
            state = 0.0;
            self.now += 0.005;
        }
        let (pace, times) = match approach {
            Approach::Cold => (WARM_UP.0, 0.0),
            Approach::Warm { boost } => (WARM_UP.0, WARM_UP.1 * f64::from(boost)),
            Approach::Half { .. } => unreachable!("no lap ends early here"),
        };
        state = 1.0 - (1.0 - state) * (-times).exp();
        self.now += returns * times / pace;
        self.state[point] = (state, self.now);
        self.spans[point].0 = self.spans[point].0.min(self.now);
        self.level = 1.0 + between * self.normal();
        true
    }

    fn walk(&mut self, point: usize, time: Duration) -> Vec<Block> {
        let Nature { returns, theft, .. } = self.nature;
        let (mut state, _) = self.state[point];
        let kept = self.nature.kept();
        let nearer = (-BLOCK * (1.0 + theft) / returns).exp();
        let blocks = (0..(time.as_secs_f64() / BLOCK) as usize).map(|_| {
            state = kept + (state - kept) * nearer;
            self.now += BLOCK;
            self.block(state)
        });
        let blocks = blocks.collect();
        self.state[point] = (state, self.now);
        self.spans[point].1 = self.now;
        blocks
    }

    fn laps(&self, _: usize, _: usize) -> f64 {
        f64::INFINITY
    }

    fn leave(&mut self, _: usize) -> Option<(Counts, u64)> {
        None
    }
}

/// The upper end of a curve: what takes long to converge.
fn targets() -> Vec<Target> {
    let target = |power: u32| Target {
        kind: PageKind::Base,
        pattern: Pattern::RandomLine,
        access: Access::Read,
        bytes: Bytes(1 << power),
    };
    (24..=31).map(target).collect()
}

/// A sweep with the usual time for each point, and the truth of each in the middle of its visits.
fn swept(nature: Nature, seed: u64) -> Vec<(Samples, f64)> {
    let targets = targets();
    let mut bench = Simulated::new(nature, targets.len(), seed);
    let sweep = Sweep {
        points: &targets,
        budget: Duration::from_millis(500) * targets.len() as u32,
        seed,
    };
    let sampled = sweep.run(&mut bench, &mut (), &|| false).expect("runs");
    let middles = bench.spans.iter().map(|(first, last)| f64::midpoint(*first, *last));
    let truths = middles.map(|middle| nature.truth(middle));
    sampled.samples.into_iter().zip(truths).collect()
}

/// Is the truth where a point says it is: within `share` of its number, or inside its bound?
fn holds(samples: &Samples, truth: f64, share: f64) -> bool {
    match (samples.ticks(), samples.bound()) {
        (Some(ticks), None) => (ticks.median / truth - 1.0).abs() <= share,
        (None, Some(bound)) => bound.low.is_none_or(|low| low <= truth) && bound.high.is_none_or(|high| truth <= high),
        other => panic!("a number or a bound: {other:?}"),
    }
}

#[test]
fn what_is_reported_is_the_converged_time_or_a_bound_that_holds() {
    let (mut wrong, mut numbers, mut all) = (Vec::new(), 0, 0);
    for returns in [0.001, 0.003, 0.01, 0.03, 0.1, 0.3] {
        for theft in [0.0, 0.1, 0.5, 2.0] {
            for penalty in [0.15, 0.8] {
                let nature = Nature {
                    returns,
                    theft,
                    penalty,
                    between: 0.005,
                    ..CALM
                };
                for (samples, truth) in &swept(nature, 11) {
                    all += 1;
                    numbers += usize::from(samples.ticks().is_some() && returns <= 0.03);
                    if !holds(samples, *truth, 0.03) {
                        wrong.push((nature, samples.arrivals.convergence(), samples.ticks()));
                    }
                }
            }
        }
    }
    assert!(wrong.len() * 50 <= all, "{} of {all}: {wrong:#?}", wrong.len());
    assert!(numbers * 10 >= all / 6 * 4 * 9, "{numbers} numbers of {all} points");
}

#[test]
fn intervals_hold_the_truth_whatever_lies_between_visits() {
    let mut missed = Vec::new();
    for between in [0.0, 0.002, 0.005, 0.01, 0.02, 0.05] {
        for (drift, returns) in [(0.0, 0.01), (0.0, 0.03), (0.005, 0.01)] {
            let nature = Nature {
                between,
                drift,
                returns,
                theft: 0.2,
                ..CALM
            };
            let (mut held, mut all) = (0, 0);
            for seed in 0..25 {
                for (samples, truth) in swept(nature, seed) {
                    let Some(ticks) = samples.ticks() else { continue };
                    all += 1;
                    held += usize::from((ticks.low..=ticks.high).contains(&truth));
                }
            }
            if all < 100 || held * 100 < all * 93 {
                missed.push((nature, held, all));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
