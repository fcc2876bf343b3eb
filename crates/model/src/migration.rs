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
    /// How much two CPUs slow each other down, by what both do; empty in older results.
    #[serde(default)]
    pub contention: Vec<Contention>,
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

/// What one CPU still does while another is at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// How far apart they are, by the topology.
    pub kind: Kind,
    /// The one that is timed, and the one beside it.
    pub cpus: [u32; 2],
    /// What the first does.
    pub mix: Mix,
    /// What the second does.
    pub beside: Mix,
    /// Throughput of the first beside the second, as a share of that alone.
    pub share: Option<Estimate>,
    /// The A/A: throughput alone after that, as a share of that alone before.
    pub again: Option<Estimate>,
}

crate::names! {
    /// What a CPU is kept busy with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Mix {
        /// Additions and shifts of integers.
        Integer = "integer",
        /// Multiplications of integers.
        IntegerMultiply = "multiply",
        /// Multiplications of floating-point numbers.
        FpMultiply = "FP multiply",
        /// Loads from memory that fits the L1 data cache.
        L1Load = "L1 loads",
        /// Loads from memory that fits the L2 cache, and not L1.
        L2Load = "L2 loads",
        /// Loads from memory that fits no cache.
        MemoryLoad = "memory loads",
    }
}

impl Contention {
    /// How much longer the first takes for the same work.
    pub fn slowdown(&self) -> Option<Estimate> {
        self.share.filter(|share| share.low > 0.0).map(|share| Estimate {
            median: 1.0 / share.median,
            low: 1.0 / share.high,
            high: 1.0 / share.low,
            samples: share.samples,
        })
    }
}
