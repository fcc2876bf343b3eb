//! The sweep: visits all points in rounds of seeded random order until each is settled or the time is spent.

use std::time::Duration;

use super::Error;
use super::plan::Target;
use super::samples::{Samples, Visit};
use crate::rounds::{self, Points, Turn};
use model::Progress;

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
/// A visit after the first may take this part of the time that is left, so that one that is expensive to set up does not take
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
}

/// A sweep under way.
struct Visited<'a> {
    targets: &'a [Target],
    bench: &'a mut dyn Bench,
    samples: Vec<Samples>,
    /// How long the last visit to each took beyond its slice.
    set_up: Vec<Duration>,
}

impl Sweep<'_> {
    /// Runs it. Every point is visited at least twice, even when the time is too short for that.
    pub(super) fn run(
        &self,
        bench: &mut dyn Bench,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<Sampled, Error> {
        let mut visited = Visited {
            targets: self.targets,
            bench,
            samples: vec![Samples::default(); self.targets.len()],
            set_up: vec![Duration::ZERO; self.targets.len()],
        };
        let rounds = rounds::run(&mut visited, self.budget, self.seed, progress, stop)?;
        Ok(Sampled {
            samples: visited.samples,
            rounds,
        })
    }
}

impl Points for Visited<'_> {
    /// Its slice of the time.
    type Visit = Duration;
    type Error = Error;
    const INTERRUPTED: Error = Error::Interrupted;

    fn count(&self) -> usize {
        self.targets.len()
    }

    fn now(&self) -> Duration {
        self.bench.now()
    }

    fn is_open(&self, point: usize, round: u32, left: Duration) -> bool {
        !self.samples[point].is_closed() && self.can_afford(point, round, left)
    }

    fn next(&self, turn: &Turn<'_>) -> Option<Duration> {
        self.can_afford(turn.point(), turn.round, turn.left)
            .then(|| self.slice(turn))
    }

    fn describe(&self, point: usize) -> String {
        let Target { op, workers } = self.targets[point];
        format!("{op} x {workers}")
    }

    fn visit(&mut self, point: usize, slice: Duration, _: &dyn Fn() -> bool) -> Result<(), Error> {
        let begun = self.bench.now();
        self.samples[point].add(self.bench.visit(point, slice)?);
        self.set_up[point] = (self.bench.now() - begun).saturating_sub(slice);
        Ok(())
    }
}

impl Visited<'_> {
    /// Is there time for another visit? Always for the first ones.
    fn can_afford(&self, point: usize, round: u32, left: Duration) -> bool {
        round < ALWAYS || (self.set_up[point] + SHORTEST) * PART <= left
    }

    /// The time for a visit: what setting up leaves of this round and those planned after it, shared out evenly.
    fn slice(&self, turn: &Turn<'_>) -> Duration {
        let Turn { round, order, left, .. } = *turn;
        let to_come = &order[turn.place..];
        if round == 0 {
            let even = left / (to_come.len() as u32 * ROUNDS);
            return even.clamp(SHORTEST, FIRST);
        }
        let rounds_after = ROUNDS.saturating_sub(round + 1);
        let set_up = |points: &[usize]| points.iter().map(|&point| self.set_up[point]).sum::<Duration>();
        let busy = set_up(to_come) + set_up(order) * rounds_after;
        let visits = to_come.len() as u32 + order.len() as u32 * rounds_after;
        (left.saturating_sub(busy) / visits).clamp(SHORTEST, LONGEST)
    }
}
