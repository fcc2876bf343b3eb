//! What is asked of a comparison, whether it was typed or comes from a recipe, and the experiment that it comes to.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use model::compare::{Because, InPlace, Loads, Method, Order, Spent};
use model::{Bytes, PageKind};
use process::rights::ShutIn;

use crate::Custom;
use crate::flip::Span;
use crate::live::Server;
use crate::metric::{Asked, Wanted};
use crate::place::Place;
use crate::technique::Technique;
use crate::threads::Threads;

/// Blocks at most: as many pairs find an effect of 3 % in recorded noise of a busy machine.
pub const USUAL_RUNS: u32 = 30;
/// Slices of each program between two starts: two blocks and the same backwards, so that steady drift cancels out. More of them
/// would say more about a process, but it is processes that differ.
const PER_START: u32 = 4;
/// Time for all runs, where none was asked for.
const BUDGET: Duration = Duration::from_secs(600);
/// The accepted share of false verdicts, over all arms, metrics, looks and sessions together.
pub(crate) const ALPHA: f64 = 0.05;

/// The smallest difference worth a verdict, as a share, where none was asked for.
const SMALLEST_EFFECT: f64 = 0.01;
/// Likewise the least share of memory on pages of an arm's kind.
const LEAST_COVERAGE: f64 = 0.5;

/// A file of arms, read once.
#[derive(Clone, Debug)]
pub struct ArmsFile {
    /// Its name.
    pub name: String,
    /// All of it.
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub task: Task,
    /// The arms, the reference first.
    pub arms: Vec<String>,
    /// A file that defines further arms.
    pub arms_file: Option<ArmsFile>,
    /// Commands that are compared with each other, by the names of their arms; empty where one program is.
    pub commands: Vec<(String, Custom)>,
    /// Places; every arm runs at each.
    pub places: Vec<Place>,
    /// How arms get their pages; by the program if it is not asked for.
    pub technique: Option<Technique>,
    /// The design; by the task if it is not asked for.
    pub design: Option<Method>,
    /// The order within blocks.
    pub order: Order,
    /// So many runs of each arm, whatever they show.
    pub runs: Option<u32>,
    /// Time for all runs, which is kept; without it there is a usual one, which gives way to a verdict.
    pub budget: Option<Duration>,
    /// Runs of each arm that do not count.
    pub warm_up: u32,
    /// The smallest difference worth a verdict, as a share.
    pub smallest_effect: f64,
    /// The least share of memory on pages of an arm's kind.
    pub least_coverage: f64,
    /// Are runs that end with an error accepted?
    pub ignore_failure: bool,
    /// The option about the loads of each start that is typed.
    pub about_starts: Option<&'static str>,
    /// Room in the pool for hugetlb arms.
    pub pool: Option<Bytes>,
    /// May no pages be borrowed?
    pub no_pool: bool,
    pub slice: Option<Duration>,
    /// The threads whose CPU time counts in slices.
    pub threads: Threads,
    /// Which memory is flipped in place.
    pub range: Span,
    /// The seed of every random choice.
    pub seed: u64,
}

/// What is run and judged.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub asked: Vec<Asked>,
    /// How to use the program if it is a server.
    pub server: Option<Server>,
    /// What all of that has in place of what this process has.
    pub shut_in: Option<Arc<ShutIn>>,
}

impl Task {
    /// The program and its arguments as text.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn load(&self) -> Option<&str> {
        self.server.as_ref().map(|server| server.load.as_str())
    }

    /// The loads of each run; in one process each slice is a load.
    pub(crate) fn loads(&self, method: Method) -> Option<Loads> {
        let server = self.server.as_ref().filter(|_| method == Method::Runs)?;
        Some(Loads {
            warm_up: server.warm_up,
            counted: server.loads.max(1),
        })
    }
}

impl Request {
    /// A comparison with nothing asked for but this.
    pub fn plain(task: Task, arms: Vec<String>, budget: Duration, seed: u64) -> Self {
        Self {
            task,
            arms,
            budget: Some(budget),
            warm_up: 1,
            smallest_effect: SMALLEST_EFFECT,
            least_coverage: LEAST_COVERAGE,
            seed,
            ..Self::default()
        }
    }

    /// What is run, for the record: the program and its arguments, or each of the commands.
    pub fn program(&self) -> Vec<String> {
        let names = self.commands.iter().map(|(name, _)| name.clone());
        Some(names.collect())
            .filter(|names: &Vec<String>| !names.is_empty())
            .unwrap_or_else(|| self.task.words())
    }

    /// The experiment, of no runs so far.
    pub(crate) fn spec(&self, method: Method, reason: Because, arms: Vec<Named>) -> Spec {
        Spec {
            program: self.program(),
            method,
            reason,
            in_place: None,
            arms,
            wanted: self.task.asked.iter().map(|asked| asked.wanted.clone()).collect(),
            order: self.order,
            most: self.runs.unwrap_or(USUAL_RUNS),
            per_start: if method == Method::Slices { PER_START } else { 1 },
            looked: Vec::new(),
            earlier: Duration::ZERO,
            loads: self.task.loads(method),
            all: self.runs.is_some(),
            warm_up: self.warm_up,
            smallest_effect: self.smallest_effect,
            alpha: ALPHA,
            least_coverage: self.least_coverage,
            budget: self.budget.or(self.runs.is_none().then_some(BUDGET)),
            is_budget_kept: self.budget.is_some(),
            seed: self.seed,
        }
    }
}

/// What an arm is called and about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// How it is brought about, and what is missing for it.
    pub technique: String,
    /// The page kind that shows whether it took effect.
    pub kind: Option<PageKind>,
    /// Where it has to run (`--place`).
    pub place: Option<String>,
}

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
    /// How long those sessions took.
    pub earlier: Duration,
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
