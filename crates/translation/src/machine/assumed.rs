//! How rows of the table were read where they leave a choice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a row of the table was read where it leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowReading {
    /// Several page sizes in one array: all of it is open to each, with the ways of its first row.
    SharedArray,
    /// Two arrays of one level hold one size: its pages are spread over both by their low bits.
    Halves,
    /// Sets that are no power of two are indexed by the remainder.
    OddSets,
    /// Frames of base pages lie in order: frame numbers are hidden without CAP_SYS_ADMIN, or were not recorded.
    FramesInOrder,
}
