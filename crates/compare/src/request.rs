//! What is asked of a comparison, whether it was typed or comes from a recipe.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use model::Bytes;
use model::compare::{Because, Loads, Method, Order};

use crate::flip::Span;
use crate::live::Server;
use crate::metric::Asked;
use crate::place::Place;
use crate::technique::Technique;
use crate::threads::Threads;
use crate::{Named, Spec};

/// Blocks at most: as many pairs find an effect of 3 % in recorded noise of a busy machine.
const MOST: u32 = 30;
/// Time for all runs, where none was asked for.
const BUDGET: Duration = Duration::from_secs(600);
/// The accepted share of false verdicts, over all arms, metrics, looks and sessions together.
pub(crate) const ALPHA: f64 = 0.05;

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is run.
    pub task: Task,
    /// The arms, the reference first.
    pub arms: Vec<String>,
    /// A file that defines further arms.
    pub arms_file: Option<PathBuf>,
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
    /// Room in the pool for hugetlb arms.
    pub pool: Option<Bytes>,
    /// May no pages be borrowed?
    pub no_pool: bool,
    /// The length of a slice.
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
    /// The metrics.
    pub asked: Vec<Asked>,
    /// How to use the program if it is a server.
    pub server: Option<Server>,
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
}

impl Task {
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
    /// The experiment.
    pub(crate) fn spec(&self, method: Method, reason: Because, arms: Vec<Named>) -> Spec {
        Spec {
            program: self.task.words(),
            method,
            reason,
            in_place: None,
            arms,
            wanted: self.task.asked.iter().map(|asked| asked.wanted.clone()).collect(),
            order: self.order,
            most: self.runs.unwrap_or(MOST),
            per_start: 1,
            looked: Vec::new(),
            loads: self.task.loads(method),
            all: self.runs.is_some(),
            warm_up: self.warm_up,
            smallest_effect: self.smallest_effect,
            alpha: ALPHA,
            least_coverage: self.least_coverage,
            budget: self.runs.is_none().then(|| self.budget.unwrap_or(BUDGET)),
            is_budget_kept: self.budget.is_some(),
            seed: self.seed,
        }
    }
}
