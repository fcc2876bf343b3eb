//! How many accesses miss when pages take turns: how full the sets are, and what a replacement policy makes of it.

use std::collections::HashMap;
use std::sync::OnceLock;

use model::tlb::Index;

use super::probe::Layout;

/// How a full set chooses the entry that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Least recently used: one page too many, and all of the set's pages miss.
    Lru,
    /// A binary tree of bits: as LRU for a power of two of ways, gentler for others.
    Tree,
    /// Any entry not used since all were used (NRU, clock).
    Clock,
    /// Any.
    Random,
}

impl Policy {
    /// All of them, the most common first.
    pub const ALL: [Self; 4] = [Self::Lru, Self::Tree, Self::Clock, Self::Random];
    /// The widest set that a tree is computed for.
    const WIDEST_TREE: u32 = 32;

    /// Does this policy differ from LRU for sets of that width?
    pub fn applies_to(self, ways: u32) -> bool {
        match self {
            Self::Lru => true,
            Self::Tree => ways <= Self::WIDEST_TREE && !ways.is_power_of_two(),
            Self::Clock | Self::Random => ways > 1,
        }
    }

    /// Share of misses, 0 to 1, among the accesses to one set of `ways` entries when `pages` pages of it take turns.
    pub fn misses(self, ways: u32, pages: u32) -> f64 {
        if pages <= ways {
            return 0.0;
        }
        let excess = f64::from(pages - ways);
        match self {
            Self::Lru => 1.0,
            // Fitted to simulated sets of 8 to 72 ways, random order of visits: within 0.05 throughout.
            Self::Clock => excess / (excess + 0.8),
            Self::Random => random_misses(f64::from(pages) / f64::from(ways)),
            Self::Tree => tree_misses(ways, pages),
        }
    }
}

/// A page survives the misses between two of its visits with probability (1 - 1/ways)^misses: the share m of misses solves
/// 1 - m = exp(-m x load), load = pages/ways. In steps of a hundredth of the load, for speed.
fn random_misses(load: f64) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    const STEPS: f64 = 100.0;
    let table = TABLE.get_or_init(|| {
        let solve = |load: f64| (0..200).fold(1.0, |misses: f64, _| 1.0 - (-misses * load).exp());
        (0..500).map(|step| solve(1.0 + f64::from(step) / STEPS)).collect()
    });
    table.get(((load - 1.0) * STEPS) as usize).copied().unwrap_or(1.0)
}

fn tree_misses(ways: u32, pages: u32) -> f64 {
    static TABLE: OnceLock<Vec<Vec<f64>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        (0..=Policy::WIDEST_TREE)
            .map(|ways| {
                (ways + 1..=2 * ways)
                    .map(|pages| simulate_tree(ways as usize, pages as usize))
                    .collect()
            })
            .collect()
    });
    table
        .get(ways as usize)
        .and_then(|row| row.get((pages - ways - 1) as usize))
        .copied()
        .unwrap_or(1.0)
}

/// Runs a tree-replaced set to its steady state, over some orders of visit.
fn simulate_tree(ways: usize, pages: usize) -> f64 {
    const ORDERS: u64 = 4;
    const LAPS: usize = 60;
    let (mut missed, mut visits) = (0, 0);
    for order in 0..ORDERS {
        let mut tree = TreeSet::new(ways, pages);
        let turns = shuffled(pages, order);
        for lap in 0..LAPS {
            for &page in &turns {
                let hit = tree.visit(page);
                if lap >= LAPS / 2 {
                    visits += 1;
                    missed += usize::from(!hit);
                }
            }
        }
    }
    missed as f64 / visits.max(1) as f64
}

struct TreeSet {
    bits: Vec<bool>,
    place: Vec<Option<usize>>,
    held: Vec<Option<usize>>,
}

impl TreeSet {
    fn new(ways: usize, pages: usize) -> Self {
        Self {
            bits: vec![false; ways.next_power_of_two()],
            place: vec![None; pages],
            held: vec![None; ways],
        }
    }

    fn visit(&mut self, page: usize) -> bool {
        let hit = self.place[page];
        let way = hit.unwrap_or_else(|| self.victim());
        if let Some(gone) = self.held[way].replace(page) {
            self.place[gone] = None;
        }
        self.place[page] = Some(way);
        let mut node = way + self.bits.len();
        while node > 1 {
            self.bits[node / 2] = node.is_multiple_of(2);
            node /= 2;
        }
        hit.is_some()
    }

    fn victim(&self) -> usize {
        if let Some(empty) = self.held.iter().position(Option::is_none) {
            return empty;
        }
        let leaves = self.bits.len();
        let leftmost = |mut node: usize| {
            while node < leaves {
                node *= 2;
            }
            node - leaves
        };
        let mut node = 1;
        while node < leaves {
            let wanted = 2 * node + usize::from(self.bits[node]);
            node = if leftmost(wanted) < self.held.len() {
                wanted
            } else {
                2 * node
            };
        }
        node - leaves
    }
}

/// `0..n` in an order that depends on the seed (Fisher-Yates over a xor-shift generator).
pub(super) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..n).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

/// How many sets hold how many of the visited pages.
pub type Histogram = Vec<(u32, u32)>;

/// Histograms by layout, pages, sets and index: every fit asks for the same ones again.
#[derive(Debug, Default)]
pub struct Occupancy(HashMap<(Layout, u32, u32, Index), Histogram>);

impl Occupancy {
    /// `(pages in a set, sets with so many)` for the sets that are used at all.
    pub fn of(&mut self, layout: Layout, pages: u32, sets: u32, index: Index) -> &Histogram {
        self.0
            .entry((layout, pages, sets, index))
            .or_insert_with(|| histogram(layout, pages, sets, index))
    }
}

fn histogram(layout: Layout, pages: u32, sets: u32, index: Index) -> Histogram {
    let mut count = vec![0u32; sets as usize];
    for page in 0..pages {
        count[index.set(layout.page(page), sets) as usize] += 1;
    }
    count.sort_unstable();
    count
        .chunk_by(|a, b| a == b)
        .filter(|equal| equal[0] > 0)
        .map(|equal| (equal[0], equal.len() as u32))
        .collect()
}

/// Share of all accesses that miss in sets so filled.
pub fn misses(histogram: &Histogram, ways: u32, policy: Policy) -> f64 {
    let (mut missed, mut all) = (0.0, 0.0);
    for &(pages, sets) in histogram {
        let here = f64::from(pages) * f64::from(sets);
        all += here;
        missed += here * policy.misses(ways, pages);
    }
    if all > 0.0 { missed / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Occupancy, Policy, misses};
    use model::tlb::Index;

    #[test]
    fn one_page_too_many_overfills_one_set() {
        let mut occupancy = Occupancy::default();
        let filled = occupancy.of(Layout::DENSE, 97, 16, Index::Linear);
        assert_eq!(filled, &[(6, 15), (7, 1)]);
        assert!((misses(filled, 6, Policy::Lru) - 7.0 / 97.0).abs() < 1e-9);
        let strided = occupancy.of(Layout::strided(4), 7, 16, Index::Linear);
        assert_eq!(misses(strided, 6, Policy::Lru), 1.0);
    }

    #[test]
    fn no_policy_misses_while_everything_fits_and_all_miss_more_with_more_pages() {
        for policy in Policy::ALL {
            for ways in [2, 3, 12, 24, 30].into_iter().filter(|&ways| policy.applies_to(ways)) {
                assert_eq!(policy.misses(ways, ways), 0.0);
                let shares: Vec<f64> = (ways..3 * ways).map(|pages| policy.misses(ways, pages)).collect();
                assert!(
                    shares.windows(2).all(|pair| pair[1] >= pair[0] - 0.06),
                    "{policy:?} {ways}: {shares:?}"
                );
                assert!(
                    shares.last().is_some_and(|&last| last > 0.7),
                    "{policy:?} {ways}: {shares:?}"
                );
            }
        }
    }

    #[test]
    fn a_tree_of_24_is_gentle_until_its_deeper_side_overflows() {
        // Sixteen of the 24 leaves hang on one half of the tree: it takes half of all misses but two thirds of the room.
        assert!((0.4..0.6).contains(&Policy::Tree.misses(24, 32)));
        assert!(Policy::Tree.misses(24, 36) > 0.9);
        assert!(!Policy::Tree.applies_to(16));
    }
}
