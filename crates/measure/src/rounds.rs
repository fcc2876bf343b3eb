//! The order of a sweep: rounds of visits to all open points, in seeded random order, until a round has none.

use std::time::Duration;

use model::Progress;
use stats::rounds;

/// What was sampled at each point, in so many rounds.
#[derive(Debug, Default)]
pub(crate) struct Sampled<S> {
    pub(crate) samples: Vec<S>,
    pub(crate) rounds: u32,
}

/// Rounds of visits to points that are known by number.
pub(crate) struct Rounds {
    points: usize,
    seed: u64,
    budget: Duration,
    end: Duration,
    /// Rounds that were begun, and the points of the last one in the order of their visits.
    begun: u32,
    pub(crate) order: Vec<usize>,
    /// Turns and visits of that round so far.
    turns: usize,
    visits: u32,
}

/// A point's turn in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) point: usize,
    pub(crate) round: u32,
    /// Turns before this one in its round.
    pub(crate) place: usize,
    /// Time left for everything.
    pub(crate) left: Duration,
}

impl Rounds {
    pub(crate) fn new(points: usize, seed: u64, budget: Duration, now: Duration) -> Self {
        Self {
            points,
            seed,
            budget,
            end: now + budget,
            begun: 0,
            order: Vec::new(),
            turns: 0,
            visits: 0,
        }
    }

    /// The next turn; `None` after a round without a visit. Where it begins a round, `is_open` says of each point whether it takes
    /// part, given the number of the round and the time left.
    pub(crate) fn next(&mut self, now: Duration, is_open: impl Fn(usize, u32, Duration) -> bool) -> Option<Turn> {
        let left = self.end.saturating_sub(now);
        if self.turns == self.order.len() {
            if self.begun > 0 && self.visits == 0 {
                return None;
            }
            self.order = rounds::order(self.points, self.seed, self.begun);
            self.order.retain(|&point| is_open(point, self.begun, left));
            (self.begun, self.turns, self.visits) = (self.begun + 1, 0, 0);
        }
        let turn = Turn {
            point: *self.order.get(self.turns)?,
            round: self.begun - 1,
            place: self.turns,
            left,
        };
        self.turns += 1;
        Some(turn)
    }

    /// Shows that the point of a turn is visited now. A turn without a visit is one that its point let pass.
    pub(crate) fn visit(&mut self, turn: &Turn, progress: &mut dyn Progress, what: &str) {
        let done = 1.0 - turn.left.as_secs_f64() / self.budget.as_secs_f64().max(1e-9);
        progress.step(done, turn.left, what);
        self.visits += 1;
    }

    /// Rounds with visits, once there is no turn left.
    pub(crate) fn done(&self) -> u32 {
        self.begun.saturating_sub(1)
    }
}
