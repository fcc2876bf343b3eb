//! How many blocks the time is enough for.

use std::time::Duration;

use super::{Executor, Experiment, looks};
use crate::looks::LEAST;
use crate::{Error, Event};

impl<E: Executor> Experiment<'_, E> {
    /// Fewer blocks where the time is not enough for all, as the warm-up shows; so looks still come at a third of them.
    pub(super) fn fit_budget_by_warm_up(&mut self, before: Duration) {
        let arms = self.spec.arms.len() as u32;
        let warm = arms * self.warmed;
        let Some(budget) = self.spec.budget.filter(|_| warm > 0 && !self.is_sliced()) else {
            return;
        };
        let spent = self.executor.elapsed();
        let block = spent
            .saturating_sub(before)
            .mul_f64(f64::from(arms + 1) / f64::from(warm));
        let least = spent + block * LEAST.saturating_sub(self.whole_blocks());
        if least > budget {
            self.around.report(&Event::ShortTime {
                least,
                budget,
                is_kept: self.spec.is_budget_kept,
            });
        }
        self.fit_budget(spent, block, self.least());
    }

    /// A time in which not one block could end is said after one run.
    pub(super) fn must_fit(&self, before: Duration) -> Result<(), Error> {
        let spent = self.executor.elapsed();
        let budget = self
            .spec
            .budget
            .filter(|_| self.spec.is_budget_kept && self.runs.is_empty());
        let run = spent.saturating_sub(before);
        let slots = self.slots() as u32;
        match budget {
            Some(budget) if spent + run * slots > budget => Err(Error::Budget {
                budget,
                run,
                least: spent + run * (slots * LEAST),
            }),
            _ => Ok(()),
        }
    }

    /// Blocks that are made even if the time is over: without them nothing could be said at all. Six starts of a program that
    /// takes a minute to load are more than was asked for; one is an exploration.
    pub(super) fn least(&self) -> u32 {
        if self.is_sliced() || self.spec.is_budget_kept {
            1
        } else {
            LEAST
        }
    }

    /// Likewise fewer starts, as the first one shows; too few of them for a verdict are an exploration.
    pub(super) fn fit_budget_by_start(&mut self, before: Duration) {
        if self.is_sliced() {
            let spent = self.executor.elapsed();
            self.fit_budget(spent, spent.saturating_sub(before), 1);
        }
    }

    fn fit_budget(&mut self, spent: Duration, block: Duration, least: u32) {
        let Some(budget) = self.spec.budget else { return };
        let room = budget.saturating_sub(spent).as_secs_f64() / block.as_secs_f64().max(1e-9);
        let done = self.whole_blocks();
        let most = self.spec.most.min((room as u32).saturating_add(done).max(least));
        // Only a plan of which no look was made yet may change.
        if self.plan.made().len() == self.spec.looked.len() {
            self.plan = looks(self.spec, most.max(done), self.plan.made());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let spent = self.executor.elapsed();
        self.whole_blocks() >= self.least() && self.spec.budget.is_some_and(|budget| spent >= budget)
    }
}
