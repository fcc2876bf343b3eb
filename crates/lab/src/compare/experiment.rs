//! Runs in blocks until every arm has its verdict, or the runs, the time or the user's patience end.

use std::collections::BTreeSet;
use std::time::Duration;

use model::compare::{Arm, Compare, Design, Ended, InPlace, Method, Order, Run};
use model::{Doubt, PageKind, Reading, Unread};

use super::judge::{self, Rules, Wanted};
use super::looks::{LEAST, Plan};
use super::schedule::{self, Slot};
use super::{Error, doubts};
use crate::progress::{Progress, time_left};

/// Nobody reads faster; a run may take a millisecond, of which telling should be no part.
const BETWEEN_TELLING: Duration = Duration::from_millis(100);

/// Makes runs, and knows what time it is: a real one starts programs, one for tests needs neither programs nor a clock.
pub trait Executor {
    /// One run of an arm, by its index.
    ///
    /// # Errors
    /// If the program could not be started or did not end well, or [`Error::Interrupted`].
    fn run(&mut self, arm: usize) -> Result<Run, Error>;
    /// The reference's second run in a block, by the reference's index: the comparison's own A/A.
    ///
    /// # Errors
    /// As for [`Executor::run`].
    fn again(&mut self, arm: usize) -> Result<Run, Error> {
        self.run(arm)
    }
    /// How long it has been at work.
    fn elapsed(&self) -> Duration;
    /// Why its runs lack hardware counters, or what those leave out.
    fn pmu_note(&self) -> Option<String> {
        None
    }
}

/// Where finished runs are kept at once, so that nothing is lost.
pub trait Keep {
    /// Keeps one run.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error>;
}

/// Nothing is kept.
impl Keep for () {
    fn keep(&mut self, _: Slot, _: &Run) -> Result<(), Error> {
        Ok(())
    }
}

/// What an arm is called and about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// How it is brought about.
    pub technique: String,
    /// The page kind that shows whether it took effect.
    pub kind: Option<PageKind>,
}

/// The experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The program and its arguments, for the record.
    pub program: Vec<String>,
    /// How arms take turns: what the executor does, for the record.
    pub method: Method,
    /// Why this way, in a sentence.
    pub reason: String,
    /// The process and its slices, where pages change in place; for the record.
    pub in_place: Option<InPlace>,
    /// The arms, the reference first.
    pub arms: Vec<Named>,
    /// The metrics that are judged.
    pub wanted: Vec<Wanted>,
    /// The order within blocks.
    pub order: Order,
    /// The most blocks.
    pub most: u32,
    /// Make all of them, whatever they show?
    pub all: bool,
    /// Runs of each arm that do not count.
    pub warm_up: u32,
    /// The smallest difference worth a verdict, as a share.
    pub smallest_effect: f64,
    /// The share of false verdicts that is put up with.
    pub alpha: f64,
    /// The least share of memory on pages of an arm's kind.
    pub least_coverage: f64,
    /// Time for all runs.
    pub budget: Option<Duration>,
    /// The seed of every random choice.
    pub seed: u64,
}

/// The result, and what to know before believing it.
pub type Outcome = (Compare, Vec<Doubt>);

/// Makes the runs that `done` lacks, keeping each.
///
/// # Errors
/// If a run cannot be made or kept. [`Error::Interrupted`] and [`Error::Gone`] are none after a first whole block: what was
/// finished is judged.
pub fn run(
    spec: &Spec,
    done: Vec<(Slot, Run)>,
    executor: &mut impl Executor,
    keep: &mut dyn Keep,
    progress: &mut dyn Progress,
) -> Result<Outcome, Error> {
    let mut experiment = Experiment::new(spec, done);
    let ended = match experiment.go(executor, keep, progress) {
        Err(Error::Interrupted) if experiment.whole_blocks() > 0 => Ended::Interrupted,
        Err(Error::Gone { .. }) if experiment.whole_blocks() > 0 => Ended::ProgramEnded,
        other => other?,
    };
    let (compare, doubts) = experiment.outcome(ended, executor.elapsed());
    let pmu_note = executor.pmu_note();
    Ok((Compare { pmu_note, ..compare }, doubts))
}

struct Experiment<'a> {
    spec: &'a Spec,
    plan: Plan,
    runs: Vec<(Slot, Run)>,
    /// Which runs those are.
    made: BTreeSet<Slot>,
    /// Blocks from the first on that lack none.
    whole: u32,
    /// When it was last told how far it is.
    told: Option<Duration>,
}

impl<'a> Experiment<'a> {
    fn new(spec: &'a Spec, runs: Vec<(Slot, Run)>) -> Self {
        let mut experiment = Self {
            spec,
            plan: looks(spec, spec.most),
            runs: Vec::new(),
            made: BTreeSet::new(),
            whole: 0,
            told: None,
        };
        runs.into_iter().for_each(|(slot, run)| experiment.take(slot, run));
        experiment
    }

    /// A run that is made already is not made twice.
    fn take(&mut self, slot: Slot, run: Run) {
        if self.made.insert(slot) {
            self.runs.push((slot, run));
        }
        while self.in_block(self.whole) == self.spec.arms.len() + 1 {
            self.whole += 1;
        }
    }

    fn in_block(&self, block: u32) -> usize {
        let first = |block| Slot {
            block,
            arm: 0,
            again: false,
        };
        self.made.range(first(block)..first(block + 1)).count()
    }

    fn go(
        &mut self,
        executor: &mut impl Executor,
        keep: &mut dyn Keep,
        progress: &mut dyn Progress,
    ) -> Result<Ended, Error> {
        self.warm_up(executor, progress)?;
        self.fit_budget(executor.elapsed());
        for block in 0..self.plan.most() {
            if self.is_over(executor.elapsed()) {
                return Ok(Ended::Budget);
            }
            self.block(block, executor, keep, progress)?;
            let finished = block + 1;
            if self.plan.is_look(finished) && !self.spec.all && self.is_settled(finished) {
                return Ok(Ended::Settled);
            }
        }
        Ok(if self.plan.most() < self.spec.most {
            Ended::Budget
        } else {
            Ended::Runs
        })
    }

    fn warm_up(&self, executor: &mut impl Executor, progress: &mut dyn Progress) -> Result<(), Error> {
        for _ in 0..self.spec.warm_up {
            for (index, arm) in self.spec.arms.iter().enumerate() {
                progress.step(
                    0.0,
                    self.spec.budget.unwrap_or_default(),
                    &format!("warming up: {}", arm.name),
                );
                executor.run(index)?;
            }
        }
        Ok(())
    }

    /// Fewer blocks where the time is not enough for all, as the warm-up tells; so looks still come at a third of them.
    fn fit_budget(&mut self, spent: Duration) {
        let arms = self.spec.arms.len() as u32;
        let warm = arms * self.spec.warm_up;
        let Some(budget) = self.spec.budget.filter(|_| warm > 0) else {
            return;
        };
        let block = spent.mul_f64(f64::from(arms + 1) / f64::from(warm));
        let room = budget.saturating_sub(spent).as_secs_f64() / block.as_secs_f64().max(1e-9);
        let done = self.whole_blocks();
        self.plan = looks(
            self.spec,
            self.spec.most.min((room as u32).saturating_add(done).max(LEAST)),
        );
    }

    /// The first blocks are made even if the time is over: without them nothing could be said at all.
    fn is_over(&self, spent: Duration) -> bool {
        self.whole_blocks() >= LEAST && self.spec.budget.is_some_and(|budget| spent >= budget)
    }

    fn block(
        &mut self,
        block: u32,
        executor: &mut impl Executor,
        keep: &mut dyn Keep,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        for slot in schedule::block(self.spec.arms.len(), self.spec.order, self.spec.seed, block) {
            if self.made.contains(&slot) {
                continue;
            }
            self.tell(progress, executor.elapsed(), slot);
            let made = if slot.again {
                executor.again(slot.arm)
            } else {
                executor.run(slot.arm)
            };
            let mut run = made?;
            (run.block, run.again, run.turn) = (slot.block, slot.again, self.runs.len() as u32);
            keep.keep(slot, &run)?;
            self.take(slot, run);
        }
        Ok(())
    }

    fn tell(&mut self, progress: &mut dyn Progress, spent: Duration, slot: Slot) {
        if self.told.is_some_and(|told| spent < told + BETWEEN_TELLING) {
            return;
        }
        self.told = Some(spent);
        let all = f64::from(self.plan.most()) * (self.spec.arms.len() + 1) as f64;
        let done = self.runs.len() as f64 / all;
        let left = time_left(spent, done);
        let what = format!(
            "block {} of {} at most: {}",
            slot.block + 1,
            self.plan.most(),
            self.spec.arms[slot.arm].name
        );
        progress.step(done, left, &what);
    }

    /// Has every arm a verdict, or an interval no wider than the smallest effect?
    fn is_settled(&self, blocks: u32) -> bool {
        let arms = self.arms(self.runs.clone());
        let (judged, _) = judge::judge(&arms, &self.spec.wanted, self.rules(self.plan.level(blocks)));
        let narrow = |low: Option<f64>, high: Option<f64>| {
            let half = low.zip(high).map(|(low, high)| (high / low).ln() / 2.0);
            half.is_some_and(|half| half <= self.spec.smallest_effect.ln_1p())
        };
        judged.iter().all(|judged| {
            use model::compare::Verdict::{Better, NoneShown, NotInEffect, Unknown, Worse};
            match judged.verdict {
                Better | Worse | NotInEffect => true,
                NoneShown => narrow(judged.low, judged.high),
                Unknown => false,
            }
        })
    }

    fn rules(&self, level: f64) -> Rules {
        Rules {
            level,
            smallest_effect: self.spec.smallest_effect,
        }
    }

    fn whole_blocks(&self) -> u32 {
        self.whole.min(self.plan.most())
    }

    /// Every arm with its own of these runs.
    fn arms(&self, runs: Vec<(Slot, Run)>) -> Vec<Arm> {
        let mut runs_of = vec![Vec::new(); self.spec.arms.len()];
        runs.into_iter().for_each(|(slot, run)| runs_of[slot.arm].push(run));
        let arm = |(named, runs): (&Named, Vec<Run>)| {
            let (coverage, took_effect) = judge::effect(named.kind, &runs, self.spec.least_coverage);
            let Named { name, technique, kind } = named.clone();
            Arm {
                name,
                technique,
                kind,
                took_effect,
                coverage,
                runs,
            }
        };
        self.spec.arms.iter().zip(runs_of).map(arm).collect()
    }

    fn outcome(mut self, ended: Ended, elapsed: Duration) -> Outcome {
        let blocks = self.whole_blocks();
        let settled = ended == Ended::Settled;
        let level = if settled {
            self.plan.level(blocks)
        } else {
            self.plan.rest(blocks)
        };
        let runs = std::mem::take(&mut self.runs);
        let arms = self.arms(runs);
        let (verdicts, controls) = judge::judge(&arms, &self.spec.wanted, self.rules(level));
        let compare = Compare {
            program: self.spec.program.clone(),
            design: self.design(ended, blocks, elapsed),
            arms,
            verdicts,
            controls,
            pmu_note: None,
            restored: None,
        };
        let doubts = doubts::all(&compare);
        (compare, doubts)
    }

    fn design(&self, ended: Ended, blocks: u32, elapsed: Duration) -> Design {
        Design {
            method: self.spec.method,
            reason: self.spec.reason.clone(),
            in_place: self.spec.in_place.clone(),
            order: self.spec.order,
            blocks,
            most: self.plan.most(),
            looks: self.plan.at().to_vec(),
            warm_up: self.spec.warm_up,
            smallest_effect: self.spec.smallest_effect,
            alpha: self.spec.alpha,
            least_coverage: self.spec.least_coverage,
            ended,
            seconds: elapsed.as_secs_f64(),
        }
    }
}

/// One look at the end, if all runs are made anyway.
fn looks(spec: &Spec, most: u32) -> Plan {
    if spec.all {
        Plan::once(most, spec.alpha)
    } else {
        Plan::new(most, spec.alpha)
    }
}

/// A run of which nothing is known yet but its numbers.
pub fn bare_run(metrics: impl IntoIterator<Item = (String, f64)>, backing: Result<model::Backing, Unread>) -> Run {
    Run {
        block: 0,
        again: false,
        turn: 0,
        metrics: metrics.into_iter().collect(),
        backing: Reading::from(backing),
        text: None,
        looks: model::compare::Looks::default(),
        notes: Vec::new(),
        slice: None,
    }
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
