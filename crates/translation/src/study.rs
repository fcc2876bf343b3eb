//! One question, many cases: page sizes, modes and working sets on one machine, with what is not known swept.

mod cost;
mod curve;
#[cfg(test)]
mod mosaic_tests;
mod run;
#[cfg(test)]
mod tests;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cost::{Choice, MIDDLE, Point, Weights};
pub use curve::{Curve, CurvePoint, Curves, curves};
pub use run::{StudyError, counted, engine, on_all_cpus, possible, result, run, unknown, walkers, weighed};

use super::machine::{Machine, RowReading};
use super::patterns::Pattern;
pub use super::range::Range;
pub use crate::machine::unknown::{Sweep, Unknown};
pub use crate::setting::{Setting, guest_pages};
use crate::walk::shadow::Exits;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Study {
    pub machine: Machine,
    /// What runs on it.
    pub pattern: Pattern,
    /// Over how much memory.
    pub working_sets: Vec<Bytes>,
    /// Who translates, with which pages.
    pub settings: Vec<Setting>,
    /// The setting that times are relative to.
    pub baseline: Setting,
    /// Accesses that are counted in each case.
    pub accesses: u64,
    /// Accesses before them.
    pub warm_up: u64,
    /// Seed of the pattern.
    pub seed: u64,
}

/// The result: `hugewise simulate translation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulation {
    /// What was simulated.
    pub machine: MachineFacts,
    /// Where the accesses come from: a pattern's name, or the name of a trace.
    pub input: String,
    /// Does every access wait for the one before? Else cycles are an upper bound, as nothing overlaps in them.
    pub is_dependent: bool,
    /// Accesses that each case counts, at most.
    pub accesses: u64,
    /// Accesses before them.
    pub warm_up: u64,
    /// The setting that times are relative to.
    pub baseline: Setting,
    /// What has no public source, and was swept instead.
    pub unknown: Vec<Sweep>,
    /// One for each working set and setting.
    pub cases: Vec<Case>,
    /// What a publication says beside what is simulated, for presets.
    pub published: Vec<Published>,
    /// Misses by the number of TLB entries, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// What was simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Its id, or its file.
    pub id: String,
    pub name: String,
    pub page_levels: u8,
    /// Entries for loads by page size, level by level.
    pub entries: Vec<PageEntries>,
    /// How rows of the CPU table were read where they leave a choice.
    pub readings: Vec<RowReading>,
    /// Where its numbers are published.
    pub source: Vec<String>,
}

/// Entries that hold pages of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageEntries {
    /// The page size in bytes.
    pub page: Bytes,
    /// First level, second level.
    pub entries: Vec<u64>,
}

pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Memory that the program uses, in bytes; of a trace what it touches is not known beforehand, and this is none.
    pub working_set: Option<Bytes>,
    /// Who translates, with which pages.
    pub setting: Setting,
    /// What one TLB entry covers, in bytes: the smaller of both pages; beside a share of huge pages, on base pages.
    pub entry: Bytes,
    /// What the TLBs cover at most with such entries, in bytes.
    pub reach: Bytes,
    /// Accesses counted.
    pub accesses: u64,
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
    /// Time relative to the baseline with the same working set.
    pub relative: Range,
    /// What each unknown alone does to the relative time; those that change nothing are left out.
    pub sensitivity: Vec<Sensitivity>,
}

/// Cycles per access by cause, where nothing overlaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cycles {
    /// Until data is there, without translation.
    pub data: Range,
    /// First-level misses that the second level holds.
    pub tlb: Range,
    /// Page walks.
    pub walks: Range,
    /// Exits of shadow paging.
    pub exits: Range,
    /// Interrupts of other virtual CPUs, for invalidations.
    #[serde(default, skip_serializing_if = "Range::is_zero")]
    pub shootdowns: Range,
}

/// What one unknown alone does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// What is not known.
    pub unknown: Unknown,
    /// The smallest relative time.
    pub low: f64,
    /// The largest relative time.
    pub high: f64,
}

/// A published value beside the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// What it is.
    pub what: String,
    /// Where it is published.
    pub source: String,
    /// Its unit.
    pub unit: String,
    /// The published value; two of them are a range.
    pub published: Vec<f64>,
    /// The simulated value.
    pub simulated: Range,
    /// Was a parameter chosen so that it comes out?
    pub is_fitted: bool,
}

impl Published {
    /// One that nothing was fitted to, and that is simulated without a range.
    pub fn exact(source: &str, what: impl Into<String>, unit: &str, published: &[f64], simulated: f64) -> Self {
        Self {
            what: what.into(),
            source: source.to_owned(),
            unit: unit.to_owned(),
            published: published.to_vec(),
            simulated: Range::exactly(simulated),
            is_fitted: false,
        }
    }
}
