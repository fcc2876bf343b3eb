//! The sweep: visits all points in rounds of seeded random order until each is settled or the time is spent.

use std::time::Duration;

use super::Error;
use super::plan::Target;
use super::samples::{Samples, Visit};
use model::Progress;
use stats::rounds;

/// Where points are visited: the real machine, or a false one in tests.
pub(super) trait Bench {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Samples a point for about `slice`, after setting it up; the inner error is why that is impossible.
    fn visit(&mut self, point: usize, slice: Duration) -> Result<Visit, Error>;
}

/// The rounds among which time is divided at first: as many as a point needs to settle. More follow while time is left and
/// points are unsettled.
const ROUNDS: u32 = stats::LEAST_VISITS as u32;
/// Visits that each point has even when the time is too short for them: one alone has no interval.
const ALWAYS: u32 = 2;
/// Below this a visit is mostly set-up.
const SHORTEST: Duration = Duration::from_millis(10);
/// The first visits, which show how long setting up takes.
const FIRST: Duration = Duration::from_millis(30);
/// Beyond this a visit gains less than another one later.
const LONGEST: Duration = Duration::from_millis(100);
/// A visit after the first may take this part of the time that is left, so that one which is dear to set up does not take
/// the later visits of many others.
const PART: u32 = 4;

/// Points, time and seed of a sweep.
pub(super) struct Sweep<'a> {
    pub(super) targets: &'a [Target],
    pub(super) budget: Duration,
    pub(super) seed: u64,
}

/// Samples of each point, and how many rounds it took.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    pub(super) samples: Vec<Samples>,
    pub(super) rounds: u32,
    /// How long the last visit to each took beyond its slice.
    pub(super) set_up: Vec<Duration>,
}

impl Sweep<'_> {
    /// Runs it. Every point is visited at least twice, even when the time is too short for that.
    pub(super) fn run(
        &self,
        bench: &mut dyn Bench,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<Sampled, Error> {
        let end = bench.now() + self.budget;
        let mut sampled = Sampled {
            samples: vec![Samples::default(); self.targets.len()],
            set_up: vec![Duration::ZERO; self.targets.len()],
            rounds: 0,
        };
        loop {
            let order = self.affordable(&sampled, end.saturating_sub(bench.now()));
            if order.is_empty() {
                return Ok(sampled);
            }
            self.round(&order, end, &mut sampled, bench, progress, stop)?;
            sampled.rounds += 1;
        }
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
        for (done, &point) in order.iter().enumerate() {
            if stop() {
                return Err(Error::Interrupted);
            }
            let begun = bench.now();
            let left = end.saturating_sub(begun);
            if !sampled.can_afford(point, left) {
                continue;
            }
            progress.step(self.done(left), left, &self.describe(point));
            let slice = sampled.slice(order, done, left);
            sampled.samples[point].add(bench.visit(point, slice)?);
            sampled.set_up[point] = (bench.now() - begun).saturating_sub(slice);
        }
        Ok(())
    }

    /// The points of the next round.
    fn affordable(&self, sampled: &Sampled, left: Duration) -> Vec<usize> {
        let mut order = rounds::order(self.targets.len(), self.seed, sampled.rounds);
        order.retain(|&point| !sampled.samples[point].is_closed() && sampled.can_afford(point, left));
        order
    }

    fn done(&self, left: Duration) -> f64 {
        1.0 - left.as_secs_f64() / self.budget.as_secs_f64().max(1e-9)
    }

    fn describe(&self, point: usize) -> String {
        let Target { op, workers } = self.targets[point];
        format!("{op} x {workers}")
    }
}

impl Sampled {
    /// Is there time for another visit? Always for the first ones.
    fn can_afford(&self, point: usize, left: Duration) -> bool {
        self.rounds < ALWAYS || (self.set_up[point] + SHORTEST) * PART <= left
    }

    /// The time for the visit to `order[done]`: what setting up leaves of this round and those planned after it, shared
    /// out evenly.
    fn slice(&self, order: &[usize], done: usize, left: Duration) -> Duration {
        if self.rounds == 0 {
            let even = left / ((order.len() - done) as u32 * ROUNDS);
            return even.clamp(SHORTEST, FIRST);
        }
        let rounds_after = ROUNDS.saturating_sub(self.rounds + 1);
        let set_up = |points: &[usize]| points.iter().map(|&point| self.set_up[point]).sum::<Duration>();
        let busy = set_up(&order[done..]) + set_up(order) * rounds_after;
        let visits = (order.len() - done) as u32 + order.len() as u32 * rounds_after;
        (left.saturating_sub(busy) / visits).clamp(SHORTEST, LONGEST)
    }
}
