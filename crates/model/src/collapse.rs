//! The shape of a collapse: large pages for memory that a running process has on base pages.

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
    /// Size of one large page.
    pub page: Bytes,
    /// What backed that memory before, by its smaps.
    pub before: Backing,
    /// What backs it now, by its smaps.
    pub after: Backing,
    /// What became of its pieces of one large page each.
    pub pieces: Pieces,
    /// Why the kernel refused pieces, one entry for each reason.
    pub refused: Vec<Refused>,
    /// Time for a piece that was collapsed, in ms; `null` when none was.
    pub ms: Option<Estimate>,
    /// Seconds from the first piece to the last, pauses included.
    pub seconds: f64,
    /// It was stopped before the last piece.
    pub stopped: bool,
}

/// Pieces of one large page each, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pieces {
    /// On one large page now: collapsed, or so before.
    pub large: u64,
    /// Too little of it is in use: a large page would take more memory than it helps.
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

/// Pieces that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The kernel's error, such as `ENOMEM`.
    pub error: String,
    /// What it means here, and what to do.
    pub meaning: String,
    /// How many pieces.
    pub pieces: u64,
}

impl Collapse {
    /// Memory that it takes more than before: a large page is whole even where only part of it was in use.
    pub fn grown(&self) -> Bytes {
        Bytes(self.after.total().0.saturating_sub(self.before.total().0))
    }
}
