//! The sweep: visits all points in rounds of seeded random order until each has converged and is settled, or the time is spent.

use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;

use super::Error;
use super::arrivals::Arrivals;
use super::converge::{self, Approach};
use super::plan::Target;
use super::sampling::{Samples, Visit};
use crate::rounds::{Rounds, Turn};
use model::Progress;

/// Where points are visited: the real machine, or a false one in tests.
pub(super) trait Bench {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Begins a visit. `false` if the point cannot be measured, or the user stopped it.
    fn enter(&mut self, point: usize, approach: Approach) -> bool;
    /// Walks on for about that long, all of it timed.
    fn walk(&mut self, point: usize, time: Duration) -> Vec<Block>;
    /// Of how many laps so many blocks are; endless where no cache keeps a line of the ring from lap to lap.
    fn laps(&self, point: usize, blocks: usize) -> f64;
    /// Ends a visit; a counted stretch and its steps, where there is a PMU.
    fn leave(&mut self, point: usize) -> Option<(Counts, u64)>;
}

/// The first look at a trend comes after so long; visits go on from there by doubling.
const SHORTEST: Duration = Duration::from_millis(4);
/// The longest walk between two questions whether to stop.
pub(super) const UNASKED: Duration = Duration::from_millis(200);
/// Visits after a warm-up that a point's time is to suffice for, beside a cold one that takes as long as all of them.
const VISITS: f64 = 8.0;
/// A cold visit that did not arrive is repeated only if it may take so many times as long.
const LONGER: f64 = 1.5;

/// Points, time and seed of a sweep.
pub(super) struct Sweep<'a> {
    pub(super) points: &'a [Target],
    pub(super) budget: Duration,
    pub(super) seed: u64,
}

/// Samples of each point, and how many rounds it took.
pub(super) type Sampled = crate::rounds::Sampled<Samples>;

/// A visit to be made: how it begins, how long it walks at first and at most.
struct Next {
    approach: Approach,
    first: Duration,
    most: Duration,
}

impl Sweep<'_> {
    /// Runs it. Every point is approached from both sides at least once, even when the time is too short for that.
    pub(super) fn run(
        &self,
        bench: &mut dyn Bench,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<Sampled, Error> {
        let mut samples = vec![Samples::default(); self.points.len()];
        let mut rounds = Rounds::new(self.points.len(), self.seed, self.budget, bench.now());
        while let Some(turn) = rounds.next(bench.now(), |point, _, _| !samples[point].is_closed()) {
            Error::if_stopped(stop)?;
            let share = self.share(&samples, &turn);
            let own = &mut samples[turn.point];
            let Some(next) = next(&own.arrivals, share, turn.left) else {
                continue;
            };
            let Target {
                kind, bytes, pattern, ..
            } = self.points[turn.point];
            rounds.visit(&turn, progress, &format!("{kind}, {bytes}, {pattern}"));
            match visit(turn.point, &next, own.arrivals.warm_level(), bench, stop)? {
                Some(visit) => own.add(&visit),
                None => own.close(),
            }
        }
        samples.iter_mut().for_each(Samples::close);
        let rounds = rounds.done();
        Ok(Sampled { samples, rounds })
    }

    /// Each open point has a share of the time by its weight.
    fn share(&self, samples: &[Samples], turn: &Turn) -> Duration {
        let points = self.points.iter().zip(samples);
        let open = points.filter(|(_, samples)| !samples.is_closed());
        let all: f64 = open.map(|(target, _)| target.weight()).sum();
        turn.left.mul_f64(self.points[turn.point].weight() / all)
    }
}

/// The visit that a point needs most: one after a warm-up, a cold one, then the approach that has had less time. `share` is
/// the point's part of the time that is `left`. `None` where that does not suffice for what it needs.
fn next(arrivals: &Arrivals, share: Duration, left: Duration) -> Option<Next> {
    let course = arrivals.course;
    let warm = Approach::Warm { boost: course.boost };
    if arrivals.walked(false).is_zero() {
        let most = share.div_f64(2.0 * VISITS).max(SHORTEST);
        let first = course.walk.max(SHORTEST);
        // Only the first one looks how long it takes; what comes after goes by that.
        let most = if course.walk.is_zero() { most } else { first };
        return Some(Next {
            approach: warm,
            first,
            most,
        });
    }
    let cold = match course.after_half {
        false => Next {
            approach: Approach::Cold,
            first: SHORTEST,
            most: (share / 2).max(SHORTEST),
        },
        true => Next {
            approach: Approach::Half { boost: course.boost },
            first: course.walk,
            most: course.walk,
        },
    };
    let longest = arrivals.longest_cold();
    let is_longer = !course.after_half && arrivals.may_go_on_cold() && cold.most > longest.mul_f64(LONGER);
    let is_due = arrivals.is_met() && arrivals.walked(true) + longest <= arrivals.walked(false) && longest <= left;
    if longest.is_zero() || is_longer || is_due {
        return Some(cold);
    }
    let walk = course.walk;
    let walked = arrivals.walked(false).as_secs_f64() / walk.as_secs_f64();
    let is_useful = walked < VISITS || arrivals.is_met();
    (walked < 2.0 || (is_useful && walk <= left)).then_some(Next {
        approach: warm,
        first: walk,
        most: walk,
    })
}

/// Makes a visit: walks until it has arrived, or as long as it may. `None` if the point cannot be measured.
fn visit(
    point: usize,
    next: &Next,
    warm: Option<f64>,
    bench: &mut dyn Bench,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Visit>, Error> {
    if !bench.enter(point, next.approach) {
        return Error::if_stopped(stop).map(|()| None);
    }
    let warm = warm.filter(|_| next.approach == Approach::Cold);
    let (mut blocks, mut walked) = (Vec::new(), Duration::ZERO);
    let mut more = next.first;
    loop {
        walk(point, more, &mut blocks, bench, stop)?;
        walked += more;
        let times = next.most.as_secs_f64() / walked.as_secs_f64();
        if walked >= next.most || converge::is_done(&ticks(&blocks), warm, times) {
            break;
        }
        more = walked.min(next.most - walked);
    }
    Ok(Some(Visit {
        approach: next.approach,
        laps: bench.laps(point, blocks.len()),
        counted: bench.leave(point),
        blocks,
        walked,
    }))
}

/// Walks for that long; whether to stop is asked in between, since a visit may take seconds.
fn walk(
    point: usize,
    time: Duration,
    blocks: &mut Vec<Block>,
    bench: &mut dyn Bench,
    stop: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let mut left = time;
    while !left.is_zero() {
        Error::if_stopped(stop)?;
        let part = left.min(UNASKED);
        blocks.extend(bench.walk(point, part));
        left -= part;
    }
    Ok(())
}

/// The undisturbed ones, in order.
fn ticks(blocks: &[Block]) -> Vec<f64> {
    let undisturbed = blocks.iter().filter(|block| !block.is_disturbed());
    undisturbed.map(|block| block.ticks).collect()
}
