//! Where wall, user and system time disagree: what an arm gained, what it cost, and from which run length on it pays. Pure.
//!
//! A huge page is zeroed when it is first touched, which a short run pays for in system time, while user time gains from then on.
//! So the same arm may lose in a short run and win in a long one.

use std::cmp::Ordering;

use model::Reading;
use model::compare::{Arm, Compare, Difference, Even, Method, Metric, Parts, Run};

use crate::judge;
use crate::paired::{self, Block};

/// A part that is smaller than this share of the other explains nothing.
const COUNTS: f64 = 0.1;
/// Run lengths that are asked about, as multiples of the run at hand.
const LENGTHS: (f64, f64) = (1e-3, 1e3);
/// Halvings of that range, in logarithms: to a ten-thousandth.
const HALVINGS: u32 = 18;

/// Those of whole runs: neither loads nor slices have a start-up.
pub(crate) fn of_runs(compare: &Compare, level: f64) -> Vec<Parts> {
    match compare.design.method {
        Method::Runs if compare.design.loads.is_none() => of(&compare.arms, level),
        _ => Vec::new(),
    }
}

/// Every arm whose parts disagree beyond chance; `level` is what the test may spend, as for the verdicts.
fn of(arms: &[Arm], level: f64) -> Vec<Parts> {
    let Some((reference, others)) = arms.split_first() else {
        return Vec::new();
    };
    let in_effect = |arm: &&Arm| arm.took_effect == Reading::Known(true);
    let others = others.iter().filter(in_effect).filter(|_| in_effect(&reference));
    others
        .filter_map(|arm| Compared { reference, arm, level }.parts())
        .collect()
}

struct Compared<'a> {
    reference: &'a Arm,
    arm: &'a Arm,
    level: f64,
}

impl Compared<'_> {
    fn parts(&self) -> Option<Parts> {
        let difference = |metric: Metric| self.difference(&|run| seconds(run, metric));
        let wall = difference(Metric::Wall)?;
        let user = difference(Metric::User)?;
        let system = difference(Metric::System)?;
        disagree(wall, user, system).then(|| Parts {
            arm: self.arm.name.clone(),
            against: self.reference.name.clone(),
            wall,
            user,
            system,
            even: self.even(user, system),
        })
    }

    /// One run of the arm in each block beside both of the reference, as scored.
    fn blocks(&self, score: &dyn Fn(&Run) -> Option<f64>) -> Vec<Block> {
        let triples = judge::triples(self.reference, self.arm, score).into_iter();
        triples.map(|(_, scores)| Block::of(scores)).collect()
    }

    fn difference(&self, score: &dyn Fn(&Run) -> Option<f64>) -> Option<Difference> {
        let interval = paired::interval(&self.blocks(score), self.level)?;
        let (low, high) = interval.ends?;
        Some(Difference {
            seconds: interval.center,
            low,
            high,
        })
    }

    /// Where the sum of system time and so many times the user time is that of the reference: asked of each length by the test
    /// that the verdicts have, so that the interval is its own.
    fn even(&self, user: Difference, system: Difference) -> Option<Even> {
        if user.sign() * system.sign() != -1 {
            return None;
        }
        let longer_is_worse = f64::from(user.sign());
        let lean = |times: f64| {
            let score = |run: &Run| {
                let all = times * seconds(run, Metric::User)? + seconds(run, Metric::System)?;
                Some(longer_is_worse * all)
            };
            let blocks = self.blocks(&score);
            (paired::lean(&blocks), paired::p_value(&blocks) <= self.level)
        };
        // From a length on: the estimate, the first that may be even, and the first that surely is beyond.
        let low = first(|times| lean(times) != (Ordering::Less, true))?;
        let estimate = first(|times| lean(times).0 != Ordering::Less)?;
        let high = first(|times| lean(times) == (Ordering::Greater, true));
        let median = |metric: Metric| stats::median(&self.reference.values(metric.name()));
        Some(Even {
            times: estimate,
            low,
            high,
            cpu_seconds: estimate * median(Metric::User)? + median(Metric::System)?,
        })
    }
}

/// Does one part of the time gain and another lose, both beyond chance and by as much as counts?
fn disagree(wall: Difference, user: Difference, system: Difference) -> bool {
    let counts = |one: Difference, other: Difference| one.seconds.abs() >= COUNTS * other.seconds.abs();
    let against = |one: Difference, other: Difference| {
        one.sign() * other.sign() == -1 && counts(one, other) && counts(other, one)
    };
    against(user, wall) || against(system, wall) || against(user, system)
}

/// The first length from which on something holds.
fn first(holds: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut before, mut from) = (LENGTHS.0.ln(), LENGTHS.1.ln());
    if !holds(LENGTHS.1) {
        return None;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(before, from);
        let side = if holds(middle.exp()) { &mut from } else { &mut before };
        *side = middle;
    }
    Some(from.exp())
}

fn seconds(run: &Run, metric: Metric) -> Option<f64> {
    run.metrics.get(metric.name()).copied()
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
