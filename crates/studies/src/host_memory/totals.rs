//! What happened in all: the counters of a run.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use translation::study::Range;

/// What happened in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Regions looked at or changed: the work of the simulation.
    pub events: u64,
    /// Huge pages broken to share pages.
    pub broken: u64,
    /// Huge pages broken to compress or swap pages.
    pub broken_to_swap: u64,
    /// Regions collapsed to huge pages.
    pub collapsed: u64,
    /// Regions that were to be huge pages, and were emulated by small ones.
    pub emulated: u64,
    /// Bytes swapped out.
    pub swapped_out: Bytes,
    /// Bytes swapped in.
    pub swapped_in: Bytes,
    /// Bytes compressed.
    pub compressed: Bytes,
    /// Bytes decompressed.
    pub decompressed: Bytes,
    /// Bytes ballooned.
    pub ballooned: Bytes,
    /// Bytes of shared pages that were written and copied.
    pub rewritten: Bytes,
    /// Bytes that scans for equal pages looked at.
    pub scanned: Bytes,
    /// Full scans for equal pages.
    pub scans: u64,
    /// Bytes moved to make whole blocks.
    pub compacted: Bytes,
    /// Times that a machine had to wait for new memory.
    pub waited: u64,
    /// The most that sharing saved, in bytes.
    pub most_saved: Bytes,
    /// The part of the time at each level: high, break, clear, soft, hard, low.
    pub levels: [f64; 6],
    /// The part of the machines' CPU time that translation took, from 0 to 1.
    pub lost: Range,
    /// That time, in seconds of a CPU.
    pub lost_cpu_s: Range,
}
