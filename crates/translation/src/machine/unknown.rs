//! What may have no public source, and the values that stand for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range::Range;

/// What may have no public source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Sizes of page-walk caches and nested TLB: entries that lead to page tables.
    WalkCaches,
    /// Cycles of a first-level TLB miss that the second level holds.
    L2TlbHit,
    /// Cycles of a page walk besides its reads and the look into the second level.
    Walk,
    /// Latency of the first-level cache, in cycles.
    L1Latency,
    /// Latency of the second-level cache, in cycles.
    L2Latency,
    /// Latency of the third-level cache, in cycles.
    L3Latency,
    /// Latency of memory, in cycles; where the last cache's size is not known from that cache's latency on.
    MemoryLatency,
    /// Cycles of an exit and its handler.
    Exit,
    /// Cycles of an interrupt of another CPU and its handler, without exits.
    Ipi,
    /// Exits for each of them in a guest.
    IpiExits,
    /// Cycles of an instruction that does not wait for memory (predictions).
    Instruction,
    /// Misses that are waited for at a time (predictions).
    Overlap,
    /// What the TLBs held before each window: nothing, or what the window before left (predictions).
    HeldBefore,
}

/// The values that stand for one unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// What is not known.
    pub unknown: Unknown,
    /// Its values.
    pub values: Range,
}
