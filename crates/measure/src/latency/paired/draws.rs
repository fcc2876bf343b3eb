//! The order of visits, what they say together, and when it is enough. Pure.
//!
//! One *draw* takes new memory for all kinds, since the frames that base pages lie on differ from process to process and decide
//! what a walk costs. In it come a few rounds. A round visits the working sets in random order, and all kinds of one working set
//! right after each other, in random order too, so that clocks and contention hit all alike. The unit of the interval is the draw ([`stats::of_clusters`]).

use std::time::Duration;

use model::headline::Percent;
use stats::rounds;

use crate::Error;

/// Rounds in a draw: taking memory takes as long as these, and more of them would know other memory no better.
pub(super) const ROUNDS: u32 = 2;
/// Draws before it may stop.
const LEAST_DRAWS: usize = 8;
/// The share of all time before it may stop: contention that lasts for some seconds is to be in it as often as it is on average.
const LEAST_TIME: f64 = 0.75;
/// Every interval is this many points wider to each side than its draws make it. A run of a minute cannot see how often it comes
/// what lasts a quarter of it, and its draws then agree too well.
const UNSEEN: f64 = 0.5;
/// It may stop when all intervals are this many points wide to each side ...
const ENOUGH: f64 = 2.0;
/// ... at this confidence. It is above the published one, since looking after each draw prefers those that happen to agree.
const TO_STOP: f64 = 0.975;

/// Where visits are made: the real machine, or a false one in tests.
pub(super) trait Bench {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Takes new memory and visits these points in order: the time of a step in each visit, `None` where there is none.
    fn draw(&mut self, number: u32, visits: &[usize]) -> Result<Vec<Option<f64>>, Error>;
}

/// Points: every kind at every working set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) sizes: usize,
    pub(super) kinds: usize,
}

impl Grid {
    pub(super) fn point(&self, size: usize, kind: usize) -> usize {
        size * self.kinds + kind
    }

    fn visits(&self, seed: u64, draw: u32) -> Vec<usize> {
        let mut visits = Vec::new();
        for round in 0..ROUNDS {
            let number = draw * ROUNDS + round;
            for size in rounds::order(self.sizes, seed, number) {
                let kinds = rounds::order(self.kinds, seed ^ (size as u64 + 1) << 16, number);
                visits.extend(kinds.into_iter().map(|kind| self.point(size, kind)));
            }
        }
        visits
    }
}

/// The times of a step by draw, point and round.
#[derive(Clone, Debug, Default)]
pub(super) struct Draws {
    /// Draw by draw, the visits to each point in order of their rounds.
    times: Vec<Vec<Vec<Option<f64>>>>,
    pub(super) is_settled: bool,
    /// Time of all stretches so far.
    pub(super) spent: Duration,
    longest: Duration,
}

impl Draws {
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Takes a draw in.
    fn add(&mut self, points: usize, visits: &[usize], times: &[Option<f64>]) {
        let mut by_point = vec![Vec::new(); points];
        for (&point, &time) in visits.iter().zip(times) {
            by_point[point].push(time);
        }
        self.times.push(by_point);
    }

    /// The time of a point over that of another as a logarithm, by draw and round, where both have a time.
    fn logs(&self, point: usize, against: usize) -> Vec<Vec<f64>> {
        let draw = |draw: &Vec<Vec<Option<f64>>>| {
            let rounds = draw[point].iter().zip(&draw[against]);
            rounds
                .filter_map(|(own, other)| Some(((*own)? / (*other)?).ln()))
                .collect()
        };
        self.times.iter().map(draw).collect()
    }

    /// What a point saves against another in percent, draw by draw: the median of its rounds.
    pub(super) fn percents(&self, point: usize, against: usize) -> Vec<f64> {
        let logs = self.logs(point, against);
        logs.iter()
            .filter_map(|draw| stats::median(draw))
            .map(percent)
            .collect()
    }

    /// What a point saves against another, with the interval of that confidence.
    pub(super) fn saved(&self, point: usize, against: usize, confidence: f64) -> Option<Percent> {
        let (middle, low, high) = stats::of_clusters(&self.logs(point, against), confidence)?;
        Some(Percent {
            percent: percent(middle),
            low: percent(high) - UNSEEN,
            high: percent(low) + UNSEEN,
        })
    }

    /// The median time of a step.
    pub(super) fn time(&self, point: usize) -> Option<f64> {
        let all: Vec<f64> = self
            .times
            .iter()
            .flat_map(|draw| &draw[point])
            .flatten()
            .copied()
            .collect();
        stats::median(&all)
    }

    /// Is what each kind saves against the first one known well enough, where it was measured at all?
    fn is_enough(&self, grid: Grid) -> bool {
        let pairs = (0..grid.sizes).flat_map(|size| (1..grid.kinds).map(move |kind| (size, kind)));
        let mut open = pairs.filter_map(|(size, kind)| {
            let (point, against) = (grid.point(size, kind), grid.point(size, 0));
            let is_measured = self.logs(point, against).iter().any(|draw| !draw.is_empty());
            is_measured.then(|| {
                self.saved(point, against, TO_STOP)
                    .is_none_or(|saved| saved.half_width() > ENOUGH)
            })
        });
        self.len() >= LEAST_DRAWS && !open.any(|is_open| is_open)
    }
}

fn percent(log: f64) -> f64 {
    (1.0 - log.exp()) * 100.0
}

/// What is drawn for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) grid: Grid,
    pub(super) seed: u64,
    /// Time of all stretches together.
    pub(super) budget: Duration,
}

/// A stretch of draws: until every interval is narrow enough, or not half of another draw would fit into its time, so that stretches
/// have their time on average. `each` hears of every draw.
pub(super) fn go_on(
    draws: &mut Draws,
    plan: &Plan,
    time: Duration,
    bench: &mut dyn Bench,
    each: &mut dyn FnMut(&Draws, Duration),
) -> Result<(), Error> {
    let (begun, spent) = (bench.now(), draws.spent);
    while !draws.is_settled {
        let before = bench.now();
        let left = (begun + time).saturating_sub(before);
        if draws.len() > 0 && left < draws.longest / 2 {
            return Ok(());
        }
        each(draws, left);
        let visits = plan.grid.visits(plan.seed, draws.len() as u32);
        let times = bench.draw(draws.len() as u32, &visits)?;
        draws.add(plan.grid.sizes * plan.grid.kinds, &visits, &times);
        // The first one may have waited for the host to bring memory in.
        let took = bench.now().saturating_sub(before);
        draws.longest = if draws.len() <= 2 {
            took
        } else {
            draws.longest.max(took)
        };
        draws.spent = spent + bench.now().saturating_sub(begun);
        draws.is_settled = draws.spent >= plan.budget.mul_f64(LEAST_TIME) && draws.is_enough(plan.grid);
    }
    Ok(())
}
