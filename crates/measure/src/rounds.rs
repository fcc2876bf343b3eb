//! The sweep that measurements share: rounds of visits to all open points, in seeded random order, until no visit is due.

use std::time::Duration;

use model::Progress;
use stats::rounds;

/// Points that are visited in rounds, and what is known of them so far.
pub(crate) trait Points {
    /// A visit to be made.
    type Visit;
    /// Why the sweep ends early.
    type Error;
    /// The user stopped it.
    const INTERRUPTED: Self::Error;

    /// How many points there are.
    fn count(&self) -> usize;

    /// Time since some start.
    fn now(&self) -> Duration;

    /// Does a point take part in the round that begins now, with so much time left?
    fn is_open(&self, point: usize, round: u32, left: Duration) -> bool;

    /// The visit that a point needs now; `None` where the time left does not suffice.
    fn next(&self, turn: &Turn<'_>) -> Option<Self::Visit>;

    /// The point in words, for the progress display.
    fn describe(&self, point: usize) -> String;

    /// Makes the visit and takes in what it gave.
    fn visit(&mut self, point: usize, visit: Self::Visit, stop: &dyn Fn() -> bool) -> Result<(), Self::Error>;
}

/// A point's turn in a round.
pub(crate) struct Turn<'a> {
    /// Rounds before this one.
    pub(crate) round: u32,
    /// The points of this round in the order of their visits, and the place of this one.
    pub(crate) order: &'a [usize],
    pub(crate) place: usize,
    /// Time left for everything.
    pub(crate) left: Duration,
}

impl Turn<'_> {
    /// The point itself.
    pub(crate) fn point(&self) -> usize {
        self.order[self.place]
    }
}

/// Runs rounds and returns how many there were. `stop` is asked before each visit.
pub(crate) fn run<P: Points>(
    points: &mut P,
    budget: Duration,
    seed: u64,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<u32, P::Error> {
    let end = points.now() + budget;
    let mut round = 0;
    loop {
        let left = end.saturating_sub(points.now());
        let mut order = rounds::order(points.count(), seed, round);
        order.retain(|&point| points.is_open(point, round, left));
        let mut visits = 0;
        for place in 0..order.len() {
            if stop() {
                return Err(P::INTERRUPTED);
            }
            let left = end.saturating_sub(points.now());
            let turn = Turn {
                round,
                order: &order,
                place,
                left,
            };
            let Some(visit) = points.next(&turn) else { continue };
            let done = 1.0 - left.as_secs_f64() / budget.as_secs_f64().max(1e-9);
            progress.step(done, left, &points.describe(turn.point()));
            points.visit(turn.point(), visit, stop)?;
            visits += 1;
        }
        if visits == 0 {
            return Ok(round);
        }
        round += 1;
    }
}
