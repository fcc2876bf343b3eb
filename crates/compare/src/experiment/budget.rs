//! How many blocks the time is enough for, and what they can show.

use std::time::{Duration, Instant};

use model::compare::Ended;

use super::{Executor, Experiment, Outcome, looks};
use crate::interim::LEAST;
use crate::{Error, Event, forecast};

/// A run that is under way when a kept time is over may go on for one part in so many of that, or for this long.
const GRACE: u32 = 10;
const LEAST_GRACE: Duration = Duration::from_secs(5);

/// Compares within a time that is kept: whatever still runs then, a trial, a warm-up or a program that never ends, is stopped as if
/// the user had.
///
/// # Errors
/// [`Error::TimeOver`] if nothing was finished by then; others as they come.
pub(crate) fn within(
    kept: Option<Duration>,
    stop: &dyn Fn() -> bool,
    compare: impl FnOnce(&dyn Fn() -> bool) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let is_over = || kept.is_some_and(|kept| began.elapsed() >= kept.saturating_add((kept / GRACE).max(LEAST_GRACE)));
    let mut compared = compare(&|| stop() || is_over());
    let was_stopped = stop();
    match (&mut compared, kept) {
        (Err(Error::Interrupted), Some(kept)) if !was_stopped => return Err(Error::TimeOver(kept)),
        (Ok((compare, _)), Some(_)) if !was_stopped && compare.design.ended == Ended::Interrupted => {
            compare.design.ended = Ended::Budget;
        }
        _ => {}
    }
    compared
}

impl<E: Executor> Experiment<'_, E> {
    /// Fewer blocks where the time is not enough for all, as the warm-up shows; so looks still come at a third of them.
    ///
    /// # Errors
    /// [`Error::Budget`] where it ends before there could be a verdict: blocks that cannot give one are not made.
    pub(super) fn fit_budget_by_warm_up(&mut self, before: Duration) -> Result<(), Error> {
        let arms = self.spec.arms.len() as u32;
        let warm = arms * self.warmed;
        let Some(budget) = self.spec.budget.filter(|_| warm > 0 && !self.is_sliced()) else {
            return Ok(());
        };
        let spent = self.executor.elapsed();
        let run = spent.saturating_sub(before) / warm;
        let block = run * (arms + 1);
        // So many runs were asked for that there is no verdict anyway.
        let wanted = if self.spec.all {
            self.spec.most.min(LEAST)
        } else {
            LEAST
        };
        let least = spent + block * wanted.saturating_sub(self.whole_blocks());
        match (least > budget, self.spec.is_budget_kept) {
            (true, true) => return Err(Error::Budget { budget, run, least }),
            (true, false) => self.around.report(&Event::ShortTime { least, budget }),
            (false, _) => {}
        }
        self.fit_budget(spent, block, self.least());
        Ok(())
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
        if self.plan.made.len() == self.spec.looked.len() {
            self.plan = looks(self.spec, most.max(done), &self.plan.made);
        }
    }

    /// What can be seen in the time that there is, as soon as enough blocks show the noise.
    pub(super) fn tell_forecast(&self) {
        let Some(budget) = self
            .spec
            .budget
            .filter(|_| self.whole == LEAST && !self.spec.all && !self.is_sliced())
        else {
            return;
        };
        let arms = self.arms(self.runs.clone());
        let block = (self.spec.earlier + self.executor.elapsed()).as_secs_f64() / f64::from(LEAST);
        let most = f64::from(self.plan.most()) * block;
        let forecast = |wanted| {
            forecast::of(
                &arms,
                wanted,
                (block, self.spec.most),
                self.spec.smallest_effect,
                &[most],
            )
        };
        for forecast in self.spec.wanted.iter().filter_map(forecast) {
            if forecast
                .visible
                .iter()
                .any(|visible| visible.effect > self.spec.smallest_effect)
            {
                self.around.report(&Event::Forecast {
                    forecast: &forecast,
                    budget: self.spec.is_budget_kept.then_some(budget),
                });
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let spent = self.executor.elapsed();
        self.whole_blocks() >= self.least() && self.spec.budget.is_some_and(|budget| spent >= budget)
    }
}
