//! Runs in blocks until every arm has its verdict, or the runs, the time or the user's patience end.

mod budget;
mod executor;

use std::collections::BTreeSet;
use std::time::Duration;

use model::compare::{Arm, Compare, Design, Ended, Method, Run, Spent};
use model::{Progress, Reading, Warning, time_left};

pub(crate) use self::budget::within;
pub use self::executor::Executor;
use super::interim::{LEAST, Plan};
use super::judge::{self, Rules};
use super::schedule::{self, Slot};
use super::{Around, Error, Keep, Named, Spec, parts, proof, warnings};

/// After so many blocks it ends if no run of any arm had more than this share of its memory on the pages of its arm: a way that works by
/// chance fails once, and not in all.
const HOPELESS: u32 = 2;
const NONE: f64 = 0.05;

/// The result, and what to know before believing it.
pub type Outcome = (Compare, Vec<Warning>);

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
    around: &dyn Around,
) -> Result<Outcome, Error> {
    let mut experiment = Experiment {
        spec,
        executor,
        keep,
        around,
        progress: around.progress(),
        plan: looks(spec, spec.most, &spec.looked),
        runs: Vec::new(),
        made: BTreeSet::new(),
        whole: 0,
        warmed: 0,
        is_judged: false,
    };
    done.into_iter().for_each(|(slot, run)| experiment.take(slot, run));
    let ended = match experiment.go() {
        Err(Error::Interrupted) if experiment.whole_blocks() > 0 => Ended::Interrupted,
        Err(Error::Gone { .. }) if experiment.whole_blocks() > 0 => Ended::ProgramEnded,
        other => other?,
    };
    experiment.outcome(ended)
}

struct Experiment<'a, E> {
    spec: &'a Spec,
    executor: &'a mut E,
    keep: &'a mut dyn Keep,
    around: &'a dyn Around,
    progress: Box<dyn Progress>,
    plan: Plan,
    runs: Vec<(Slot, Run)>,
    /// Which runs those are.
    made: BTreeSet<Slot>,
    /// Blocks from the first on that lack none; of slices, starts.
    whole: u32,
    /// Runs of each arm that were made before the first that counts.
    warmed: u32,
    /// Was the reference's first run looked at?
    is_judged: bool,
}

impl<E: Executor> Experiment<'_, E> {
    /// A run that is made already is not made twice.
    fn take(&mut self, slot: Slot, run: Run) {
        if self.made.insert(slot) {
            self.runs.push((slot, run));
        }
        while self.in_start(self.whole) == self.spec.per_start as usize * self.slots() {
            self.whole += 1;
        }
    }

    /// Runs in a block.
    fn slots(&self) -> usize {
        self.spec.arms.len() + 1
    }

    /// Do programs live on from slice to slice, each of them started anew now and then?
    fn is_sliced(&self) -> bool {
        self.spec.method == Method::Slices
    }

    fn in_start(&self, start: u32) -> usize {
        let first = |start| Slot {
            block: start * self.spec.per_start,
            arm: 0,
            again: false,
        };
        self.made.range(first(start)..first(start + 1)).count()
    }

    fn go(&mut self) -> Result<Ended, Error> {
        let before = self.executor.elapsed();
        self.warm_up()?;
        self.fit_budget_by_warm_up(before)?;
        self.plan = looks(self.spec, self.plan.most().max(self.whole), &self.plan.made);
        if self.is_settled_already() {
            return Ok(Ended::Settled);
        }
        let mut start = 0;
        while start < self.plan.most() {
            if start >= self.whole {
                if self.is_over() {
                    return Ok(Ended::Budget);
                }
                self.start(start)?;
            }
            if start >= self.whole {
                // The time ended within it.
                return Ok(Ended::Budget);
            }
            start += 1;
            if self.whole == HOPELESS && self.is_hopeless() {
                return Ok(Ended::Settled);
            }
            // With further runs in hand an earlier look would not be one; of too few nothing is asked.
            let is_look = start >= self.whole.max(LEAST) && self.plan.at.contains(&start) && !self.spec.all;
            if is_look && self.look(start)? {
                return Ok(Ended::Settled);
            }
        }
        Ok(if self.plan.most() < self.spec.most {
            Ended::Budget
        } else if self.spec.all {
            Ended::Runs
        } else {
            Ended::UsualRuns
        })
    }

    /// The turns from a start of the programs to the next.
    fn start(&mut self, start: u32) -> Result<(), Error> {
        let before = self.executor.elapsed();
        self.executor.begin(start)?;
        let first = start * self.spec.per_start;
        for block in first..first + self.spec.per_start {
            self.block(block)?;
        }
        self.fit_budget_by_start(before);
        self.tell_forecast();
        Ok(())
    }

    /// What an earlier session found when it looked at the very same runs.
    fn is_settled_already(&self) -> bool {
        let was_looked_at = self.plan.made.iter().any(|look| look.blocks == self.whole);
        was_looked_at && !self.spec.all && self.is_settled(self.whole)
    }

    /// Looks at the verdicts; is everything settled?
    fn look(&mut self, blocks: u32) -> Result<bool, Error> {
        let level = self.plan.level(blocks);
        self.spend(Spent { blocks, level })?;
        Ok(self.is_settled(blocks))
    }

    fn spend(&mut self, look: Spent) -> Result<(), Error> {
        self.plan.make(look).map_or(Ok(()), |look| self.keep.look(look))
    }

    /// Half of the time at most: what counts comes after it. Programs of slices are warmed up at each of their starts.
    fn warm_up(&mut self) -> Result<(), Error> {
        if self.is_sliced() {
            self.warmed = self.spec.warm_up;
            return Ok(());
        }
        let budget = self.spec.budget;
        let is_over = |spent: Duration| budget.is_some_and(|budget| spent * 2 >= budget);
        while self.warmed < self.spec.warm_up && !(self.warmed > 0 && is_over(self.executor.elapsed())) {
            for (index, arm) in self.spec.arms.iter().enumerate() {
                let left = budget.unwrap_or_default();
                self.progress.step(0.0, left, &format!("warming up: {}", arm.name));
                let before = self.executor.elapsed();
                let run = self.executor.run(index)?;
                self.judge_first(index, &run)?;
                self.must_fit(before)?;
            }
            self.warmed += 1;
        }
        Ok(())
    }

    /// A reference without its pages is reported after its first run, not after all of them.
    fn judge_first(&mut self, arm: usize, run: &Run) -> Result<(), Error> {
        let is_one_program = self.spec.method == Method::Flip;
        if arm == 0 && !is_one_program && self.runs.is_empty() && !std::mem::replace(&mut self.is_judged, true) {
            proof::must_be_in_effect(&self.spec.arms[0], run, self.spec.least_coverage)?;
        }
        Ok(())
    }

    fn block(&mut self, block: u32) -> Result<(), Error> {
        for slot in schedule::block(self.spec.arms.len(), self.spec.order, self.spec.seed, block) {
            if self.made.contains(&slot) {
                continue;
            }
            if self.spec.is_budget_kept && self.is_over() {
                return Ok(());
            }
            self.tell(slot);
            let mut run = match slot.again {
                true => self.executor.again(slot.arm)?,
                false => self.executor.run(slot.arm)?,
            };
            self.judge_first(slot.arm, &run)?;
            (run.block, run.again, run.turn) = (slot.block, slot.again, self.runs.len() as u32);
            self.keep.keep(slot, &run)?;
            self.take(slot, run);
        }
        Ok(())
    }

    fn tell(&mut self, slot: Slot) {
        let spent = self.executor.elapsed();
        let blocks = self.plan.most() * self.spec.per_start;
        let all = f64::from(blocks) * self.slots() as f64;
        let done = self.runs.len() as f64 / all;
        let left = time_left(spent, done);
        let end = self.spec.budget.filter(|_| self.spec.is_budget_kept);
        let left = end.map_or(left, |end| left.min(end.saturating_sub(spent)));
        let what = format!(
            "block {} of {} at most: {}",
            slot.block + 1,
            blocks,
            self.spec.arms[slot.arm].name
        );
        self.progress.step(done, left, &what);
    }

    /// Has every arm a verdict?
    fn is_settled(&self, blocks: u32) -> bool {
        let arms = self.arms(self.runs.clone());
        let (judged, _) = judge::judge(&arms, &self.spec.wanted, self.rules(self.plan.level(blocks)));
        judged.iter().all(|judged| {
            use model::compare::Verdict::{Better, Inconclusive, NoDifference, NotInEffect, Unknown, Worse};
            match judged.verdict {
                Better | Worse | NoDifference | NotInEffect => true,
                Inconclusive | Unknown => false,
            }
        })
    }

    /// Does no arm get its pages in any run, so that more runs would be compared with nothing?
    fn is_hopeless(&self) -> bool {
        let is_without = |arm: &Arm| {
            let most = arm.coverage.known().map(|coverage| coverage.high);
            arm.took_effect == Reading::Known(false) && most.is_some_and(|most| most < NONE)
        };
        !self.spec.all && self.arms(self.runs.clone()).iter().skip(1).all(is_without)
    }

    fn rules(&self, level: f64) -> Rules {
        Rules {
            level,
            smallest_effect: self.spec.smallest_effect,
            per_start: self.spec.per_start,
        }
    }

    fn whole_blocks(&self) -> u32 {
        self.whole.min(self.plan.most())
    }

    /// Every arm with its own of these runs.
    fn arms(&self, runs: Vec<(Slot, Run)>) -> Vec<Arm> {
        let mut runs_of = vec![Vec::new(); self.spec.arms.len()];
        runs.into_iter().for_each(|(slot, run)| runs_of[slot.arm].push(run));
        let arm = |(named, mut runs): (&Named, Vec<Run>)| {
            let (coverage, took_effect) = proof::effect(named.kind, &mut runs, self.spec.least_coverage);
            Arm {
                name: named.name.clone(),
                technique: named.technique.clone(),
                kind: named.kind,
                place: named.place.clone(),
                took_effect,
                coverage,
                runs,
            }
        };
        self.spec.arms.iter().zip(runs_of).map(arm).collect()
    }

    /// What this look may spend: an interruption is no end, since --resume goes on with the runs.
    fn last_level(&self, ended: Ended, blocks: u32) -> f64 {
        match ended {
            Ended::Settled | Ended::Interrupted => self.plan.level(blocks),
            Ended::Runs | Ended::UsualRuns | Ended::Budget | Ended::ProgramEnded => self.plan.rest(blocks),
        }
    }

    fn outcome(mut self, ended: Ended) -> Result<Outcome, Error> {
        let blocks = self.whole_blocks();
        let level = self.last_level(ended, blocks);
        let runs = std::mem::take(&mut self.runs);
        let arms = self.arms(runs);
        let (verdicts, controls) = judge::judge(&arms, &self.spec.wanted, self.rules(level));
        if verdicts.iter().any(|judged| judged.p.is_some()) {
            self.spend(Spent { blocks, level })?;
        }
        let mut compare = Compare {
            program: self.spec.program.clone(),
            design: self.design(ended, blocks),
            arms,
            verdicts,
            controls,
            parts: Vec::new(),
            pmu_note: self.executor.pmu_note(),
            starts: self.executor.starts(),
            forecast: None,
            restored: None,
        };
        compare.parts = parts::of_runs(&compare, level);
        let warnings = warnings::all(&compare);
        let cut = (self.warmed < self.spec.warm_up).then(|| warnings::warm_up_cut(self.warmed, self.spec.warm_up));
        let own = self.executor.warnings(&compare);
        Ok((compare, own.into_iter().chain(warnings).chain(cut).collect()))
    }

    fn design(&self, ended: Ended, blocks: u32) -> Design {
        Design {
            method: self.spec.method,
            reason: self.spec.reason.clone(),
            in_place: self.spec.in_place.clone(),
            loads: self.spec.loads,
            order: self.spec.order,
            blocks,
            per_start: self.spec.per_start,
            most: self.plan.most(),
            looks: self.plan.at.clone(),
            spent: self.plan.made.clone(),
            warm_up: self.warmed,
            smallest_effect: self.spec.smallest_effect,
            alpha: self.spec.alpha,
            least_coverage: self.spec.least_coverage,
            ended,
            seconds: (self.spec.earlier + self.executor.elapsed()).as_secs_f64(),
        }
    }
}

/// One look at the end, if all runs are made anyway.
fn looks(spec: &Spec, most: u32, made: &[Spent]) -> Plan {
    let plan = if spec.all { Plan::once } else { Plan::new };
    plan(most, spec.alpha, made)
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sliced_tests.rs"]
mod sliced_tests;

#[cfg(test)]
#[path = "resumed_tests.rs"]
mod resumed_tests;
