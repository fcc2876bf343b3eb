//! Sweeps: every combination of machines, inputs, working sets, modes, pages and parameters is a point, simulated on its own.
//!
//! A sweep is a file (`file`), its points have numbers that never depend on who simulates them (`plan`), and each finished point
//! is a line (`lines`). So one sweep can be killed and gone on with, or spread over machines in shards and merged.

mod axes;
mod file;
mod head;
mod lines;
mod parameters;
mod plan;
mod run;
mod shard;
#[cfg(test)]
mod tests;
mod texts;
mod typed;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use file::Sweep;
pub use head::{Digest, Head, Source};
pub use lines::{Found, LinesError, merged, read, text};
pub use parameters::{Axes, Parameters};
pub use plan::{Input, MOST_POINTS, Plan};
pub use run::{PointError, RunError, run};
pub use shard::Shard;
pub use typed::{SweepError, Typed};

use super::shadow::Exits;
use super::study::{Cycles, MachineFacts, Range, Setting, Sweep as Swept, is_none};

/// One simulated point: a line of the file of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Its number in the sweep, from 0.
    pub point: u64,
    /// Seed of the pattern.
    pub seed: u64,
    /// The machine, as the sweep names it.
    pub machine: String,
    /// The pattern or trace, as the sweep names it.
    pub input: String,
    /// Memory that a pattern uses, in bytes; none of a trace.
    pub working_set: Option<Bytes>,
    /// Who translates, with which pages.
    pub setting: Setting,
    /// Values that the sweep sets in place of the machine's own.
    #[serde(default, skip_serializing_if = "Parameters::is_none")]
    pub parameters: Parameters,
    /// Accesses counted.
    pub accesses: u64,
    /// Accesses before them.
    pub warm_up: u64,
    /// What one TLB entry covers, in bytes.
    pub entry: Bytes,
    /// What the TLBs cover at most with such entries, in bytes.
    pub reach: Bytes,
    /// By TLB level: misses per access. The last one is walked.
    pub miss_rates: Vec<f64>,
    /// Page-table entries read per walk.
    pub references_per_walk: Range,
    /// Page-table entries read per access.
    pub references: Range,
    /// Exits of shadow paging.
    pub exits: Exits,
    /// Interrupts of other virtual CPUs, for invalidations.
    #[serde(default, skip_serializing_if = "is_none")]
    pub shootdowns: u64,
    /// Cycles per access by cause.
    pub cycles: Cycles,
    /// Cycles per access, all causes together; the range is over everything that is not known.
    pub total: Range,
}

/// The result: `hugewise simulate sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// What was asked: the head of the file of points.
    pub sweep: Head,
    /// The setting that times are relative to.
    pub baseline: Setting,
    /// The machines, with what has no public source and was swept over its range.
    pub machines: Vec<SweptMachine>,
    /// Combinations that a machine cannot do, which are no points.
    pub left_out: Vec<LeftOut>,
    /// The points, or those of a shard.
    pub points: Vec<Point>,
}

/// A machine of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptMachine {
    /// As the sweep names it.
    pub name: String,
    /// What it is.
    pub facts: MachineFacts,
    /// What is not known of it, as far as the settings need it and no parameter sets it.
    pub unknown: Vec<Swept>,
}

/// Combinations that are no points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The machine.
    pub machine: String,
    /// The setting or parameter.
    pub what: String,
    /// Why it cannot do that.
    pub why: String,
}
