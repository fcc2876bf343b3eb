//! The result of `collapse`: huge pages for memory of a running process that base pages back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Backing, Bytes, Estimate};

/// What became of one process's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collapse {
    /// Process id.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// Which of its memory: `anon`, `heap`, `text`, or addresses.
    pub range: String,
    /// Size of one huge page.
    pub page: Bytes,
    /// What backed that memory before, by its smaps.
    pub before: Backing,
    /// What backs it now, by its smaps.
    pub after: Backing,
    /// Its PMD ranges by outcome.
    pub pieces: Pieces,
    /// Why the kernel refused PMD ranges, one entry for each reason.
    pub refused: Vec<Refused>,
    /// Time to collapse one PMD range, in ms; `null` when none was.
    pub ms: Option<Estimate>,
    /// Seconds from the first PMD range to the last, pauses included.
    pub seconds: f64,
    /// It was stopped before the last PMD range.
    pub stopped: bool,
}

/// PMD ranges (each as large as one huge page) by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pieces {
    /// Backed by one huge page now, whether collapsed or so before.
    pub large: u64,
    /// Too little of it is in use: a huge page would cost more memory than it is worth.
    pub sparse: u64,
    /// Refused by the kernel, after retries where these can help.
    pub refused: u64,
    /// Not tried: it was stopped.
    pub left: u64,
}

impl Pieces {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.large + self.sparse + self.refused + self.left
    }
}

/// PMD ranges that the kernel refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The kernel's error, such as `ENOMEM`.
    pub error: String,
    /// What it means here, and what to do.
    pub meaning: String,
    /// How many PMD ranges.
    pub pieces: u64,
}

impl Collapse {
    /// Memory that it takes more than before: a huge page is whole even where only part of it was in use.
    pub fn grown(&self) -> Bytes {
        Bytes(self.after.total().0.saturating_sub(self.before.total().0))
    }
}
