//! From runs to verdicts: a difference must be likely, large enough, and above the comparison's own noise. Pure.

use std::collections::BTreeMap;

use model::Reading;
use model::compare::{Arm, Control, Judged, Run, Verdict, Why};

use crate::interim::LEAST;
use crate::metric::Wanted;
use crate::paired::{self, Block, Interval};

/// What verdicts are held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The share of false verdicts that this look may spend.
    pub level: f64,
    /// The smallest difference worth a verdict, as a share.
    pub smallest_effect: f64,
    /// Turns of each process that are one question: the slices that it makes from its start to its end.
    pub per_start: u32,
}

/// Judges every arm but the first against the first, by every metric; and the first against itself.
pub fn judge(arms: &[Arm], wanted: &[Wanted], rules: Rules) -> (Vec<Judged>, Vec<Control>) {
    let Some((reference, others)) = arms.split_first() else {
        return (Vec::new(), Vec::new());
    };
    let of_wanted = |wanted| control(reference, wanted, rules.per_start);
    let controls: Vec<Control> = wanted.iter().map(of_wanted).collect();
    let of_metric = |(wanted, control)| {
        let noise = noise(control);
        let of_arm = move |arm| Compared::new(reference, arm, wanted, noise, rules);
        others.iter().map(of_arm)
    };
    let compared: Vec<Compared<'_>> = wanted.iter().zip(&controls).flat_map(of_metric).collect();
    // Only arms that took effect ask a question, so only they share the error.
    let asked: Vec<f64> = compared.iter().filter_map(|compared| compared.p).collect();
    let mut corrected = paired::holm(&asked).into_iter();
    let judged = compared.iter().map(|compared| {
        let p = compared.p.and_then(|_| corrected.next());
        compared.judged(reference, p, rules)
    });
    (judged.collect(), controls)
}

/// How far the reference lies from itself.
fn noise(control: &Control) -> f64 {
    control.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

/// The two runs of the reference in each block. Its interval is that of one question: nothing ends for it.
fn control(reference: &Arm, wanted: &Wanted, per_start: u32) -> Control {
    let references = references(reference, &|run| score(run, wanted)).into_iter();
    let blocks: Vec<Block> = by_start(references, per_start)
        .map(|[peer, own]| Block { own, peers: vec![peer] })
        .collect();
    let interval = paired::interval(&blocks, paired::REJECTED);
    let [ratio, low, high] = ratios(interval);
    Control {
        metric: wanted.name.clone(),
        ratio,
        low,
        high,
        p: interval.map(|_| paired::p_value(&blocks)),
    }
}

/// The estimate, the lower and the upper end of an interval of logarithms.
fn ratios(interval: Option<Interval>) -> [Option<f64>; 3] {
    let ends = interval.and_then(|interval| interval.ends);
    [
        interval.map(|interval| interval.center.exp()),
        ends.map(|(low, _)| low.exp()),
        ends.map(|(_, high)| high.exp()),
    ]
}

/// What processes score from their start to their end: the means of their turns. Slices of one process share its luck, so that
/// they are no more than one question; of whole runs each is a process.
fn by_start<const N: usize>(
    blocks: impl Iterator<Item = (u32, [f64; N])>,
    per_start: u32,
) -> impl Iterator<Item = [f64; N]> {
    let mut starts: BTreeMap<u32, Vec<[f64; N]>> = BTreeMap::new();
    for (block, scores) in blocks {
        starts.entry(block / per_start.max(1)).or_default().push(scores);
    }
    starts.into_values().map(|turns| {
        let mean = |at: usize| turns.iter().map(|scores| scores[at]).sum::<f64>() / turns.len() as f64;
        std::array::from_fn(mean)
    })
}

/// Logarithm of a metric, so that more is better; `None` where the run lacks it, or it is no positive number.
pub(crate) fn score(run: &Run, wanted: &Wanted) -> Option<f64> {
    let value = run.metrics.get(&wanted.name).copied()?;
    let sign = if wanted.higher { 1.0 } else { -1.0 };
    (value > 0.0 && value.is_finite()).then(|| sign * value.ln())
}

/// What a run is held against another by.
type Score<'a> = &'a dyn Fn(&Run) -> Option<f64>;

/// Both scores of the reference in each block that has both, of runs that count.
fn references(reference: &Arm, score: Score<'_>) -> BTreeMap<u32, [f64; 2]> {
    let of = |again: bool| -> BTreeMap<u32, f64> {
        let runs = reference.counted().filter(|run| run.again == again);
        runs.filter_map(|run| Some((run.block, score(run)?))).collect()
    };
    let second = of(true);
    let first = of(false).into_iter();
    first
        .filter_map(|(block, first)| Some((block, [first, *second.get(&block)?])))
        .collect()
}

/// The scores of an arm and of both runs of the reference in each block that has all three, of runs that count.
pub(crate) fn triples(reference: &Arm, arm: &Arm, score: Score<'_>) -> Vec<(u32, [f64; 3])> {
    let references = references(reference, score);
    let of = |run: &Run| {
        let &[first, second] = references.get(&run.block)?;
        Some((run.block, [score(run)?, first, second]))
    };
    arm.counted().filter_map(of).collect()
}

/// One arm's runs with both runs of the reference as peers, block by block.
struct Compared<'a> {
    arm: &'a Arm,
    wanted: &'a Wanted,
    blocks: Vec<Block>,
    interval: Option<Interval>,
    /// The probability, if this is a question at all.
    p: Option<f64>,
    noise: f64,
    reference_took_effect: bool,
    /// Does a run that counts lack the metric as a positive number?
    lacks_numbers: bool,
}

impl<'a> Compared<'a> {
    fn new(reference: &Arm, arm: &'a Arm, wanted: &'a Wanted, noise: f64, rules: Rules) -> Self {
        let scores = triples(reference, arm, &|run| score(run, wanted)).into_iter();
        let blocks: Vec<Block> = by_start(scores, rules.per_start).map(Block::of).collect();
        let reference_took_effect = reference.took_effect == Reading::Known(true);
        let is_asked =
            reference_took_effect && arm.took_effect == Reading::Known(true) && blocks.len() >= LEAST as usize;
        Self {
            arm,
            wanted,
            interval: paired::interval(&blocks, rules.level),
            p: is_asked.then(|| paired::p_value(&blocks)),
            blocks,
            noise,
            reference_took_effect,
            lacks_numbers: [reference, arm]
                .into_iter()
                .flat_map(Arm::counted)
                .any(|run| score(run, wanted).is_none()),
        }
    }

    fn judged(&self, reference: &Arm, p: Option<f64>, rules: Rules) -> Judged {
        let (verdict, why) = self.verdict(p, rules);
        let [ratio, low, high] = ratios(self.interval);
        Judged {
            arm: self.arm.name.clone(),
            against: reference.name.clone(),
            metric: self.wanted.name.clone(),
            ratio,
            low,
            high,
            p,
            pairs: self.blocks.len() as u32,
            verdict,
            why,
        }
    }

    fn verdict(&self, p: Option<f64>, rules: Rules) -> (Verdict, Why) {
        match &self.arm.took_effect {
            Reading::Known(true) if self.reference_took_effect => {}
            Reading::Known(true) => return (Verdict::Unknown, Why::Reference),
            Reading::Known(false) => return (Verdict::NotInEffect, Why::NotInEffect),
            Reading::Unread(_) => return (Verdict::Unknown, Why::EffectUnread),
        }
        match (self.interval, p) {
            (Some(interval), Some(p)) => difference(interval, p, self.noise, rules),
            _ if rules.per_start > 1 && !self.blocks.is_empty() => (Verdict::Unknown, Why::FewStarts),
            _ if self.lacks_numbers => (Verdict::Unknown, Why::NoNumber),
            _ => (Verdict::Unknown, Why::FewPairs),
        }
    }
}

/// Likely, large enough, above the noise of the reference against itself.
fn difference(interval: Interval, p: f64, noise: f64, rules: Rules) -> (Verdict, Why) {
    let size = interval.center.abs();
    let why_not = if p > rules.level {
        // The interval by itself may say otherwise, as it is asked but one question.
        Some(match interval.ends {
            None => Why::StrictLook,
            Some(_) if interval.holds_zero() => Why::Chance,
            Some(_) => Why::OneOfMany,
        })
    } else if size < rules.smallest_effect.ln_1p() {
        Some(Why::Small)
    } else {
        (size <= noise).then_some(Why::Noise)
    };
    let smallest = rules.smallest_effect.ln_1p();
    let is_ruled_out = |(low, high): (f64, f64)| -smallest <= low && high <= smallest;
    match why_not {
        Some(why) if interval.ends.is_some_and(is_ruled_out) => (Verdict::NoDifference, why),
        Some(why) => (Verdict::Inconclusive, why),
        None if interval.center > 0.0 => (Verdict::Better, Why::Clear),
        None => (Verdict::Worse, Why::Clear),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
