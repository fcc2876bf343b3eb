//! How the runs of a comparison were arranged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Because, Method};

/// How the runs were arranged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// How the arms took turns.
    #[serde(default)]
    pub method: Method,
    /// Why this way.
    pub reason: Because,
    /// The process and its slices, where pages change in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlace>,
    /// The loads of each run, where it is one of a server; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<Loads>,
    /// The order within blocks.
    pub order: Order,
    /// Blocks that were finished: each has every arm once, and the reference twice. In slices of several programs, starts of
    /// all programs: the test exchanges processes, not their slices.
    pub blocks: u32,
    /// Slices of each program between two starts; 1 in other designs.
    #[serde(default = "one")]
    pub per_start: u32,
    /// The most blocks that there could have been.
    pub most: u32,
    /// Numbers of blocks after which a look was planned whether to go on.
    pub looks: Vec<u32>,
    /// Looks that were made, those of earlier sessions of `--resume` included, with what each might spend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
    /// Runs of each arm before the first that counts.
    pub warm_up: u32,
    /// The smallest difference worth a verdict: 0.01 is 1 %.
    pub smallest_effect: f64,
    /// The significance level: the share of false verdicts that is accepted over all arms, metrics and looks together.
    pub alpha: f64,
    /// An arm is in effect if at least this share of the program's memory is on pages of its kind.
    pub least_coverage: f64,
    /// Why no further block was run.
    pub ended: Ended,
    /// Seconds from the first warm-up to the last run.
    pub seconds: f64,
}

fn one() -> u32 {
    1
}

/// A look at the verdicts, after which runs may end or go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Blocks that were finished.
    pub blocks: u32,
    /// The share of false verdicts that it might spend; all looks together spend no more than `alpha`.
    pub level: f64,
}

/// One process that lives on while its pages change, and how slices of its time are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InPlace {
    /// The process.
    pub pid: u32,
    /// Was it started for this comparison, and ended with it?
    #[serde(default)]
    pub started: bool,
    /// Which of its memory: `anon`, `heap`, or addresses.
    pub range: String,
    /// Threads whose CPU time counts: `all`, or how their names begin.
    pub threads: String,
    /// Seconds of a slice; `null` where it lasts as long as a load.
    pub slice_seconds: Option<f64>,
    /// Seconds after a flip that are left out.
    pub settle_seconds: f64,
}

/// How often a server is loaded between its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loads {
    /// Loads that do not count, before the others.
    pub warm_up: u32,
    /// Loads that count.
    pub counted: u32,
}

crate::names! {
    /// The order of the arms within blocks.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Order, "an order" {
        /// A random order, and the same backwards in the next block (ABBA): what drifts steadily cancels out.
        #[default]
        Mirrored = "mirrored",
        /// Another random order in every block.
        Random = "random",
    }
}

/// Why a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every arm had its verdict, or an interval as narrow as the smallest effect.
    Settled,
    /// All the runs that were asked for are done.
    Runs,
    /// As many runs as are made where no number of them was asked for are done.
    UsualRuns,
    /// The time was over.
    Budget,
    /// The user stopped it.
    Interrupted,
    /// A program ended that was to stay alive for further slices.
    ProgramEnded,
}
