//! The sweep: visits all points in rounds of seeded random order until each is settled or the time is spent.

use std::time::Duration;

use super::Error;
use super::plan::Target;
use super::sampling::{Samples, Visit};
use crate::{Progress, rounds};

/// Where points are visited: the real machine, or a false one in tests.
pub(super) trait Bench {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Samples a point for about `slice`; empty if it cannot be measured.
    fn visit(&mut self, point: usize, slice: Duration) -> Visit;
}

/// The rounds among which time is divided at first. More follow while time is left and points are unsettled.
const ROUNDS: u32 = 3;
/// Below this a visit is mostly warm-up.
const SHORTEST: Duration = Duration::from_millis(3);
/// Beyond this a visit gains less than another one later.
const LONGEST: Duration = Duration::from_millis(100);

/// Working sets up to twice this many bytes take the same time, larger ones more.
const SMALL: f64 = 262_144.0;

/// Points, time and seed of a sweep.
pub(super) struct Sweep<'a> {
    pub(super) points: &'a [Target],
    pub(super) budget: Duration,
    pub(super) seed: u64,
}

/// Samples of each point, and how many rounds it took.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    pub(super) samples: Vec<Samples>,
    pub(super) rounds: u32,
}

impl Sweep<'_> {
    /// Runs it. Every point is visited at least once, even when the time is too short for that.
    pub(super) fn run(
        &self,
        bench: &mut dyn Bench,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<Sampled, Error> {
        let end = bench.now() + self.budget;
        let mut sampled = Sampled {
            samples: vec![Samples::default(); self.points.len()],
            rounds: 0,
        };
        loop {
            let order = self.open(&sampled);
            let left = end.saturating_sub(bench.now());
            if order.is_empty() || (sampled.rounds > 0 && left < SHORTEST) {
                break;
            }
            self.round(&order, end, &mut sampled, bench, progress, stop)?;
            sampled.rounds += 1;
        }
        sampled.samples.iter_mut().for_each(Samples::close);
        Ok(sampled)
    }

    fn round(
        &self,
        order: &[usize],
        end: Duration,
        sampled: &mut Sampled,
        bench: &mut dyn Bench,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let rounds_after = f64::from(ROUNDS.saturating_sub(sampled.rounds + 1));
        for (done, &point) in order.iter().enumerate() {
            if stop() {
                return Err(Error::Interrupted);
            }
            let left = end.saturating_sub(bench.now());
            if sampled.rounds > 0 && left < SHORTEST {
                return Ok(());
            }
            progress.step(self.done(left), left, &self.describe(point));
            let ahead = self.weight(&order[done..]) + self.weight(order) * rounds_after;
            let slice = left.mul_f64(self.weight(&[point]) / ahead).clamp(SHORTEST, LONGEST);
            let visit = bench.visit(point, slice);
            if visit.blocks.is_empty() {
                sampled.samples[point].close();
            }
            sampled.samples[point].add(&visit);
        }
        Ok(())
    }

    fn open(&self, sampled: &Sampled) -> Vec<usize> {
        let mut order = rounds::order(self.points.len(), self.seed, sampled.rounds);
        order.retain(|&point| !sampled.samples[point].is_closed());
        order
    }

    /// How the time is shared out: a large working set takes longer to warm, and its blocks hold fewer steps.
    fn weight(&self, points: &[usize]) -> f64 {
        let weight = |&point: &usize| (self.points[point].bytes.0 as f64 / SMALL).log2().clamp(1.0, 12.0);
        points.iter().map(weight).sum()
    }

    fn done(&self, left: Duration) -> f64 {
        1.0 - left.as_secs_f64() / self.budget.as_secs_f64().max(1e-9)
    }

    fn describe(&self, point: usize) -> String {
        let Target {
            kind, bytes, pattern, ..
        } = self.points[point];
        format!("{kind}, {bytes}, {pattern}")
    }
}
