//! The shape of what a move of a thread to another CPU costs: by how far it goes, and by how much of the caches it had used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{Backed, Bound};
use crate::placement::Kind;
use crate::{Bytes, Estimate, PageKind};

/// The whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Migration {
    /// The CPUs that could be moved between.
    pub cpus: Vec<u32>,
    /// Kinds of moves that these CPUs have, the nearest first.
    pub kinds: Vec<Moves>,
    /// Kinds that they do not have.
    pub absent: Vec<Kind>,
    /// What backs the memory.
    pub page: PageKind,
    /// One entry for each kind and footprint.
    pub points: Vec<Point>,
    /// Rounds through all points.
    pub rounds: u32,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// Moves of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moves {
    /// How far.
    pub kind: Kind,
    /// The pairs of CPUs that were moved between, there and back.
    pub pairs: Vec<[u32; 2]>,
    /// The call that moves the thread (`sched_setaffinity`), in ns, until it runs on the other CPU. The load balancer moves without it.
    pub call_ns: Option<Estimate>,
}

/// One kind of move with one footprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// How far.
    pub kind: Kind,
    /// The memory that the thread reads and writes before and after.
    pub bytes: Bytes,
    /// One pass over it on the CPU where it was, in ns.
    pub stay_ns: Option<Estimate>,
    /// The first pass on the other CPU, in ns.
    pub moved_ns: Option<Estimate>,
    /// What the move adds to that pass, in ns; `null` where there is a bound or a reason.
    pub cost_ns: Option<Estimate>,
    /// What limits the cost that did not settle.
    pub bound: Option<Bound>,
    /// Why there is neither.
    pub not_measured: Option<String>,
    /// Moves that count.
    pub moves: u64,
    /// Moves that do not, as the thread was interrupted or was elsewhere.
    pub dropped: u64,
    /// What backs the memory, with the proof.
    pub backing: Backed,
}
