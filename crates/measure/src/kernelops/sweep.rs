//! The sweep: visits all points in rounds of seeded random order until each is settled or the time is spent.

use std::time::Duration;

use super::Error;
use super::plan::Target;
use super::samples::{Samples, Visit};
use crate::rounds::{Rounds, Turn};
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

/// Samples of each point, and how many rounds it took.
pub(super) type Sampled = crate::rounds::Sampled<Samples>;

/// Sweeps over all points. Every one is visited at least twice, even when the time is too short for that.
pub(super) fn sweep(
    targets: &[Target],
    budget: Duration,
    seed: u64,
    bench: &mut dyn Bench,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<Sampled, Error> {
    let count = targets.len();
    let mut samples = vec![Samples::default(); count];
    // How long the last visit to each took beyond its slice.
    let mut set_up = vec![Duration::ZERO; count];
    // Is there time for another visit? Always for the first ones.
    let can_afford =
        |set_up: Duration, round: u32, left: Duration| round < ALWAYS || (set_up + SHORTEST) * PART <= left;
    let mut rounds = Rounds::new(count, seed, budget, bench.now());
    while let Some(turn) = rounds.next(bench.now(), |point, round, left| {
        !samples[point].is_closed() && can_afford(set_up[point], round, left)
    }) {
        Error::if_stopped(stop)?;
        let Turn { point, round, left, .. } = turn;
        if !can_afford(set_up[point], round, left) {
            continue;
        }
        let slice = slice(&turn, &rounds.order, &set_up);
        rounds.visit(&turn, progress, &targets[point].to_string());
        let begun = bench.now();
        samples[point].add(bench.visit(point, slice)?);
        set_up[point] = (bench.now() - begun).saturating_sub(slice);
    }
    let rounds = rounds.done();
    Ok(Sampled { samples, rounds })
}

/// The time for a visit: what setting up leaves of this round and those planned after it, shared out evenly.
fn slice(turn: &Turn, order: &[usize], set_up: &[Duration]) -> Duration {
    let Turn { round, place, left, .. } = *turn;
    let to_come = &order[place..];
    if round == 0 {
        let even = left / (to_come.len() as u32 * ROUNDS);
        return even.clamp(SHORTEST, FIRST);
    }
    let rounds_after = ROUNDS.saturating_sub(round + 1);
    let all = |points: &[usize]| points.iter().map(|&point| set_up[point]).sum::<Duration>();
    let busy = all(to_come) + all(order) * rounds_after;
    let visits = to_come.len() as u32 + order.len() as u32 * rounds_after;
    (left.saturating_sub(busy) / visits).clamp(SHORTEST, LONGEST)
}
