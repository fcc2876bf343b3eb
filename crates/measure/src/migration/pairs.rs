//! Pairs of CPUs by how far they are apart. Pure.

use std::collections::BTreeMap;

use host::Distances;
use model::placement::Kind;
use stats::rounds;

use crate::pairs_of;

/// Pairs of a kind that are measured: a machine of 256 CPUs has 32,640.
const MOST: usize = 4;

/// The kinds that these CPUs have, the nearest first, with some pairs of each, drawn by the seed.
pub fn pairs(cpus: &[u32], distances: &Distances, seed: u64) -> Vec<(Kind, Vec<[u32; 2]>)> {
    let mut by_kind: BTreeMap<Kind, Vec<[u32; 2]>> = BTreeMap::new();
    for [one, two] in pairs_of(cpus) {
        by_kind.entry(distances.kind(one, two)).or_default().push([one, two]);
    }
    let drawn = |all: Vec<[u32; 2]>| {
        let order = rounds::order(all.len(), seed, 0).into_iter().take(MOST);
        let mut drawn: Vec<[u32; 2]> = order.map(|at| all[at]).collect();
        drawn.sort_unstable();
        drawn
    };
    by_kind.into_iter().map(|(kind, all)| (kind, drawn(all))).collect()
}
