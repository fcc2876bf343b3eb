//! What to measure of latency.

use std::time::Duration;

use model::latency::{Access, Pattern};
use model::{Bytes, PageKind};

#[derive(Clone, Debug)]
pub struct Spec {
    /// Page kinds, each in an arena of its own.
    pub kinds: Vec<PageKind>,
    /// Working sets.
    pub sizes: Vec<Bytes>,
    /// Orders of visit.
    pub patterns: Vec<Pattern>,
    /// Loads only, loads and stores, or both.
    pub accesses: Vec<Access>,
    /// Time for everything, set-up included; `None`: by the weight of its points, set-up not included. At least a third of it goes to
    /// sampling, so that it is overdrawn where bringing pages in is slow.
    pub budget: Option<Duration>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Pin the timed thread here instead of where it happens to run.
    pub cpu: Option<u32>,
    /// Bind memory to this NUMA node.
    pub node: Option<u32>,
    /// All memory is as near to every CPU (one NUMA node), so that bringing it in may use all of them.
    pub one_node: bool,
    /// Private cache (L2): up to here core cycles say more than nanoseconds.
    pub private_cache: Option<Bytes>,
    /// Last-level cache: decides how long a warm-up is, and what clears the caches.
    pub last_cache: Option<Bytes>,
    /// Memory that may be taken without harm (MemAvailable).
    pub available: Bytes,
}
