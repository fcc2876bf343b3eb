//! Statistics of blocks: how far one run lies from its peers, how sure that is, and how likely by chance. Pure.
//!
//! A block is the score of one run, and the scores of its peers, made at about the same time in a random order. Scores are
//! logarithms: then twice as fast and half as fast lie equally far from 0. One test answers all three questions, the one of
//! `ranks`: the probability is what it gives, the interval holds every shift of the run that it does not reject, and the
//! estimate is the shift by which it sees no difference at all (Hodges and Lehmann). So they cannot contradict each other.

mod ranks;

use std::cmp::Ordering;

use self::ranks::Ranks;
use crate::interim::LEAST;

/// What a 95 % interval leaves out, if it is asked for once.
pub(crate) const REJECTED: f64 = 0.05;
/// Shifts are found to a millionth, as a ratio.
const FINE: f64 = 1e-6;

/// One run and its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The score of the run that is asked about.
    pub own: f64,
    /// Those of its peers, one at least.
    pub peers: Vec<f64>,
}

impl Block {
    /// A run of an arm, and both of the reference.
    pub(crate) fn of([own, first, second]: [f64; 3]) -> Self {
        let peers = vec![first, second];
        Self { own, peers }
    }

    /// All scores, as if the run had done worse by so much.
    fn all(&self, shift: f64) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.own - shift).chain(self.peers.iter().copied())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub center: f64,
    /// Lower and upper end; `None` of so few blocks that the test rejects no shift at all.
    pub ends: Option<(f64, f64)>,
}

impl Interval {
    /// Is no difference at all among what it holds?
    pub fn holds_zero(&self) -> bool {
        self.ends.is_none_or(|(low, high)| low <= 0.0 && 0.0 <= high)
    }
}

/// The probability of ranks at least as far out if the runs of each block were alike, two-sided.
pub fn p_value(blocks: &[Block]) -> f64 {
    Ranks::of(blocks, 0.0).p_value()
}

/// Do the runs lie above their peers, or below, whether that is chance or not?
pub fn lean(blocks: &[Block]) -> Ordering {
    Ranks::of(blocks, 0.0).lean()
}

/// How far the runs lie above their peers: the middle of all shifts that leave them neither above nor below; `None` of nothing.
fn center(blocks: &[Block]) -> Option<f64> {
    let (low, high) = reach(blocks)?;
    let lean = |shift| Ranks::of(blocks, shift).lean();
    let from = edge(low, high, |shift| lean(shift).is_gt());
    let to = edge(low, high, |shift| lean(shift).is_ge());
    Some((from + to) / 2.0)
}

/// The estimate, with the interval of all shifts to which the test gives more than `rejected`; `None` of nothing.
pub fn interval(blocks: &[Block], rejected: f64) -> Option<Interval> {
    let (low, high) = reach(blocks)?;
    let center = center(blocks)?;
    let is_held = |shift| Ranks::of(blocks, shift).p_value() > rejected;
    let has_ends = blocks.len() >= LEAST as usize && !is_held(low - FINE) && !is_held(high + FINE);
    let ends = || (edge(center, low, is_held), edge(center, high, is_held));
    Some(Interval {
        center,
        ends: has_ends.then(ends),
    })
}

/// Shifts beyond which every run lies below all of its peers, or above: the smallest and the largest difference of single runs,
/// and a little more.
fn reach(blocks: &[Block]) -> Option<(f64, f64)> {
    let of_block = |block: &Block| block.peers.iter().map(|peer| block.own - peer).collect::<Vec<_>>();
    let differences = || blocks.iter().flat_map(of_block);
    let low = differences().min_by(f64::total_cmp)?;
    let high = differences().max_by(f64::total_cmp)?;
    let more = (high - low) / 100.0;
    Some((low - more, high + more))
}

/// The last place at which something holds on the way from one where it does to one where it does not. 0 is asked first: of
/// that, at least, an interval says just what the test does.
fn edge(mut inside: f64, mut outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut next = if inside.min(outside) < 0.0 && inside.max(outside) > 0.0 {
        0.0
    } else {
        f64::midpoint(inside, outside)
    };
    while (outside - inside).abs() > FINE {
        let side = if holds(next) { &mut inside } else { &mut outside };
        *side = next;
        next = f64::midpoint(inside, outside);
    }
    inside
}

/// Holm's correction: what each of several probabilities comes to when all are asked at once, in the order given.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![1.0; values.len()];
    let mut largest = 0.0_f64;
    for (place, &at) in order.iter().enumerate() {
        let left = (values.len() - place) as f64;
        largest = largest.max((values[at] * left).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

#[cfg(test)]
#[path = "paired_tests.rs"]
mod tests;
