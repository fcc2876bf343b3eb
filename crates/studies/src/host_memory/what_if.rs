//! The answer to "what if": each change with the ranges of what it does, over all draws.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use translation::study::Range;

/// What would be different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nothing.
    #[default]
    AsIs,
    /// Some machines have no huge pages.
    LargePagesOff,
    /// KSM merges pages.
    KsmOn,
    /// There are more machines.
    MoreVms,
    /// One machine is on 1 GiB pages.
    GiantPages,
}

/// What a capture does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// The part of pages that are zeros.
    Zero,
    /// The part of pages that are also in other machines.
    Common,
    /// The part of pages that are written all the time.
    Volatile,
    /// How far equal pages lie together.
    Clustered,
    /// The part of memory that is in use all the time.
    Active,
    /// The part of memory that is not resident yet and will be.
    Growth,
}

/// The values drawn for one unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drawn {
    /// What is not known.
    pub unknown: Unknown,
    /// The least value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Draws of what is not known.
    pub draws: u32,
    /// What is not known, with the range that values are drawn from evenly.
    pub unknown: Vec<Drawn>,
    /// One for each change.
    pub rows: Vec<WhatIf>,
}

/// One change. Ranges are the least, the median and the most of all draws.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// What would be different.
    pub change: Change,
    /// The machines that it is about, by name; empty for all.
    pub vms: Vec<String>,
    /// Machines in all.
    pub count: usize,
    /// Why it cannot be, if so.
    pub refused: Option<String>,
    /// Free memory at the end, in bytes.
    pub free: Range,
    /// Of the memory that is there, the part on huge pages.
    pub large: Range,
    /// Bytes that merging saves at the end.
    pub saved: Range,
    /// Huge pages split.
    pub broken: Range,
    /// Bytes swapped out and in.
    pub swapped: Range,
    /// The part of CPU time that translation takes; 0 if it was not asked for.
    pub lost: Range,
    /// The part of the draws in which memory is swapped or machines wait for it.
    pub short: f64,
}
