//! What an experiment is made of: its plan, who makes the runs, and where they are kept.

use std::time::Duration;

use model::compare::{Because, InPlace, Loads, Looks, Method, Order, Run, Spent};
use model::{Backing, PageKind, Reading, Unread};

use super::Error;
use super::judge::Wanted;
use super::schedule::Slot;

/// Makes runs, and has a clock: a real one starts programs, one for tests needs neither programs nor a clock.
pub trait Executor {
    /// What has to be there before the turns of a start are taken; nothing where every turn starts its own program.
    ///
    /// # Errors
    /// As for [`Executor::run`].
    fn begin(&mut self, _start: u32) -> Result<(), Error> {
        Ok(())
    }
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
    /// Keeps that the verdicts were looked at: a session that goes on with these runs may spend the less.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn look(&mut self, _look: Spent) -> Result<(), Error> {
        Ok(())
    }
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
    /// Where it has to run (`--place`).
    pub place: Option<String>,
    /// Why there are fewer pages of its kind than it needs.
    pub shortage: Option<String>,
}

impl Named {
    /// How it is brought about, and what is missing for it.
    pub(crate) fn description(&self) -> String {
        match &self.shortage {
            None => self.technique.clone(),
            Some(why) => format!("{}; {why}", self.technique),
        }
    }
}

/// The experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The program and its arguments, for the record.
    pub program: Vec<String>,
    /// How arms take turns: what the executor does, for the record.
    pub method: Method,
    /// Why this way.
    pub reason: Because,
    /// The process and its slices, where pages change in place; for the record.
    pub in_place: Option<InPlace>,
    /// The arms, the reference first.
    pub arms: Vec<Named>,
    /// The metrics that are judged.
    pub wanted: Vec<Wanted>,
    /// The order within blocks.
    pub order: Order,
    /// The most blocks; of slices of several programs, the most starts.
    pub most: u32,
    /// Slices of each program from its start to its end; 1 in other designs.
    pub per_start: u32,
    /// Looks of earlier sessions whose runs these go on with.
    pub looked: Vec<Spent>,
    /// The loads of each run, where wall time is theirs and not the program's from its start to its end.
    pub loads: Option<Loads>,
    /// Make all of them, whatever they show?
    pub all: bool,
    /// Runs of each arm that do not count.
    pub warm_up: u32,
    /// The smallest difference worth a verdict, as a share.
    pub smallest_effect: f64,
    /// The accepted share of false verdicts.
    pub alpha: f64,
    /// The least share of memory on pages of an arm's kind.
    pub least_coverage: f64,
    /// Time for all runs.
    pub budget: Option<Duration>,
    /// Does it end then whatever it has shown? Otherwise the blocks without which there is no verdict are made.
    pub is_budget_kept: bool,
    /// The seed of every random choice.
    pub seed: u64,
}

/// A run of which nothing is known yet but its numbers.
pub fn bare_run(metrics: impl IntoIterator<Item = (String, f64)>, backing: Result<Backing, Unread>) -> Run {
    Run {
        block: 0,
        again: false,
        turn: 0,
        metrics: metrics.into_iter().collect(),
        backing: Reading::from(backing),
        text: None,
        looks: Looks::default(),
        notes: Vec::new(),
        slice: None,
        loads: Vec::new(),
        ran: None,
    }
}
