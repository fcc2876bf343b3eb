//! What to measure of moves.

use std::time::Duration;

use model::placement::Kind;
use model::{Bytes, PageKind};

#[derive(Clone, Debug)]
pub struct Spec {
    /// Kinds of moves, each with pairs of CPUs.
    pub kinds: Vec<(Kind, Vec<[u32; 2]>)>,
    /// Memory that the thread uses before and after.
    pub sizes: Vec<Bytes>,
    pub page: PageKind,
    /// Memory for work on two CPUs at once: what fits L2, and not L1.
    pub in_l2: Bytes,
    /// And what fits no cache.
    pub beyond: Bytes,
    /// Is each kind of work done beside its own kind only?
    pub is_quick: bool,
    /// Time for all points.
    pub budget: Duration,
    /// Seed of every random choice.
    pub seed: u64,
}
