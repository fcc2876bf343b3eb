//! Runs with a known truth: visits that differ, drift, have a tail on one side, and share their rounds.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How the level of visits moves, apart from noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moves {
    /// Each visit finds a level of its own, from a normal distribution.
    Normal,
    /// Each visit finds a level of its own, from an exponential distribution: a tail on one side.
    Skewed,
    /// The level rises evenly over the run.
    Linear,
    /// The level walks at random over the run.
    Walk,
}

pub(crate) const MOVES: [Moves; 4] = [Moves::Normal, Moves::Skewed, Moves::Linear, Moves::Walk];
/// Standard deviations between visits, as shares.
pub(crate) const SPREADS: [f64; 6] = [0.0, 0.002, 0.005, 0.01, 0.02, 0.05];
/// The middle of every run, before the drift of that run.
pub(crate) const LEVEL: f64 = 100.0;
const SAMPLES: usize = 15;
/// The standard deviation of a sample within its visit, as a share.
const WITHIN: f64 = 0.01;
/// Steps of a random walk between two visits.
const STEPS: usize = 8;

pub(crate) struct Draws(Pcg64Mcg);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// By Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.0.random::<f64>()).cos()
    }

    /// Exponential, less its median, in units of its standard deviation.
    fn skewed(&mut self) -> f64 {
        -(1.0 - self.0.random::<f64>()).ln() - std::f64::consts::LN_2
    }

    /// The levels that the visits find, and the true middle of the run.
    pub(crate) fn levels(&mut self, visits: usize, spread: f64, moves: Moves) -> (Vec<f64>, f64) {
        let level = |by: f64| LEVEL * (1.0 + spread * by);
        match moves {
            Moves::Normal => ((0..visits).map(|_| level(self.normal())).collect(), LEVEL),
            Moves::Skewed => ((0..visits).map(|_| level(self.skewed())).collect(), LEVEL),
            Moves::Linear => {
                let share = |at: usize| (at as f64 + 0.5) / visits as f64 - 0.5;
                // An even rise has this standard deviation if it goes over the root of twelve of them.
                (
                    (0..visits).map(|at| level(share(at) * 12.0_f64.sqrt())).collect(),
                    LEVEL,
                )
            }
            Moves::Walk => self.walk(visits, spread),
        }
    }

    fn walk(&mut self, visits: usize, spread: f64) -> (Vec<f64>, f64) {
        // A walk of `n` steps strays by the root of a sixth of them from its own middle.
        let step = spread * (6.0 / (visits * STEPS) as f64).sqrt();
        let mut at = 0.0;
        let mut way = Vec::with_capacity(visits * STEPS);
        for _ in 0..visits * STEPS {
            at += step * self.normal();
            way.push(LEVEL * (1.0 + at));
        }
        let levels = way.iter().skip(STEPS / 2).step_by(STEPS).copied().collect();
        (levels, way.iter().sum::<f64>() / way.len() as f64)
    }

    /// Samples of visits that find these levels.
    pub(crate) fn visits(&mut self, levels: &[f64]) -> Vec<Vec<f64>> {
        let mut visit = |level: f64| (0..SAMPLES).map(|_| level * (1.0 + WITHIN * self.normal())).collect();
        levels.iter().map(|&level| visit(level)).collect()
    }
}

/// The share of runs whose interval holds the truth, in percent.
pub(crate) fn coverage(runs: u32, mut holds: impl FnMut() -> bool) -> f64 {
    let held: u32 = (0..runs).map(|_| u32::from(holds())).sum();
    f64::from(held) * 100.0 / f64::from(runs)
}
