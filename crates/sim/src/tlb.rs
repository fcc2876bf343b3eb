//! TLBs on paper: levels of set-associative arrays of any geometry, shared or separate by page size, with their costs.

use model::Bytes;
use model::tlb::Index;

/// Which entry of a full set goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used one.
    Lru,
    /// The one a binary tree of "other half" bits points at; for odd ways the missing leaves are skipped.
    TreePlru,
    /// Any, by a fixed generator.
    Random,
}

/// One array of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// 1 for the array asked first.
    pub level: u8,
    /// Page sizes it holds.
    pub holds: Vec<Bytes>,
    /// Sets, a power of two.
    pub sets: u32,
    /// Entries per set.
    pub ways: u32,
    /// How a page chooses its set.
    pub index: Index,
    /// Which entry of a full set goes.
    pub replacement: Replacement,
    /// Core cycles it takes to find out that an entry is here rather than a level earlier.
    pub cycles: f64,
}

impl Array {
    /// A linear LRU array that holds pages of one size.
    pub fn new(level: u8, page: Bytes, sets: u32, ways: u32, cycles: f64) -> Self {
        Self {
            level,
            holds: vec![page],
            sets,
            ways,
            index: Index::Linear,
            replacement: Replacement::Lru,
            cycles,
        }
    }

    /// The same with pages scattered over its sets by XOR.
    pub fn hashed(self) -> Self {
        Self {
            index: Index::Xor,
            ..self
        }
    }
}

/// The set of a page among `sets` (a power of two): its lowest bits, or all of its bits folded by XOR.
pub fn set_of(index: Index, page: u64, sets: u32) -> u32 {
    let mask = u64::from(sets) - 1;
    let bits = sets.trailing_zeros();
    if bits == 0 {
        return 0;
    }
    match index {
        Index::Linear => (page & mask) as u32,
        Index::Xor => {
            let (mut rest, mut folded) = (page, 0);
            while rest != 0 {
                folded ^= rest & mask;
                rest >>= bits;
            }
            folded as u32
        }
    }
}

/// A translation machine: arrays, and a walk behind them.
#[derive(Clone, Debug)]
pub struct Tlb {
    arrays: Vec<(Array, Vec<Set>)>,
    walk_cycles: f64,
}

impl Tlb {
    /// An empty machine. A miss everywhere costs `walk_cycles` on top of the last level's cycles.
    pub fn new(arrays: &[Array], walk_cycles: f64) -> Self {
        let mut arrays: Vec<_> = arrays
            .iter()
            .map(|array| {
                let sets = (0..array.sets).map(|n| Set::new(array.ways, u64::from(n))).collect();
                (array.clone(), sets)
            })
            .collect();
        arrays.sort_by_key(|(array, _)| array.level);
        Self { arrays, walk_cycles }
    }

    /// Translates an access to page number `page` of that size, held as such, and returns what it costs beyond a first-level hit.
    /// For splintered pages pass the smaller of the guest's and the host's page.
    pub fn access(&mut self, size: Bytes, page: u64) -> f64 {
        let mut cost = 0.0;
        let mut found = false;
        for (array, sets) in self.arrays.iter_mut().filter(|(array, _)| array.holds.contains(&size)) {
            if found {
                break;
            }
            cost += array.cycles;
            let set = &mut sets[set_of(array.index, page, array.sets) as usize];
            // Two sizes never share a number: the tag carries the size.
            found = set.access((size.0.trailing_zeros().into(), page), array.replacement);
        }
        if found { cost } else { cost + self.walk_cycles }
    }
}

type Tag = (u64, u64);

#[derive(Clone, Debug)]
struct Set {
    tags: Vec<Option<Tag>>,
    used: Vec<u64>,
    tree: Vec<bool>,
    now: u64,
    random: u64,
}

impl Set {
    fn new(ways: u32, seed: u64) -> Self {
        let ways = ways as usize;
        Self {
            tags: vec![None; ways],
            used: vec![0; ways],
            tree: vec![false; ways.next_power_of_two()],
            now: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Looks a tag up and brings it in if it is not there; was it?
    fn access(&mut self, tag: Tag, replacement: Replacement) -> bool {
        let hit = self.tags.iter().position(|&held| held == Some(tag));
        let way = hit.unwrap_or_else(|| self.victim(replacement));
        self.tags[way] = Some(tag);
        self.now += 1;
        self.used[way] = self.now;
        if replacement == Replacement::TreePlru {
            self.point_away_from(way);
        }
        hit.is_some()
    }

    fn victim(&mut self, replacement: Replacement) -> usize {
        if let Some(empty) = self.tags.iter().position(Option::is_none) {
            return empty;
        }
        match replacement {
            Replacement::Lru => (0..self.used.len()).min_by_key(|&way| self.used[way]).unwrap_or(0),
            Replacement::TreePlru => self.pointed_at(),
            Replacement::Random => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                (self.random % self.tags.len() as u64) as usize
            }
        }
    }

    fn pointed_at(&self) -> usize {
        let leaves = self.tree.len();
        let mut node = 1;
        while node < leaves {
            let wanted = 2 * node + usize::from(self.tree[node]);
            let mut leftmost = wanted;
            while leftmost < leaves {
                leftmost *= 2;
            }
            node = if leftmost - leaves < self.tags.len() {
                wanted
            } else {
                2 * node
            };
        }
        node - leaves
    }

    fn point_away_from(&mut self, way: usize) {
        let mut node = way + self.tree.len();
        while node > 1 {
            self.tree[node / 2] = node % 2 == 0;
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Array, Index, Replacement, Tlb, set_of};
    use model::Bytes;

    const BASE: Bytes = Bytes::kib(4);
    const LARGE: Bytes = Bytes::mib(2);

    /// Mean cost of the third lap over pages `0, stride, 2 stride, ...`.
    fn lap(tlb: &mut Tlb, size: Bytes, pages: u64, stride: u64) -> f64 {
        let mut total = 0.0;
        for _ in 0..3 {
            total = (0..pages).map(|page| tlb.access(size, page * stride)).sum();
        }
        total / pages as f64
    }

    #[test]
    fn what_fits_costs_nothing_and_one_page_too_many_evicts_just_its_set() {
        let l1 = [Array::new(1, BASE, 16, 6, 0.0), Array::new(2, BASE, 128, 16, 7.0)];
        let mut tlb = Tlb::new(&l1, 21.0);
        assert_eq!(lap(&mut tlb, BASE, 96, 1), 0.0);
        assert!((lap(&mut Tlb::new(&l1, 21.0), BASE, 97, 1) - 7.0 * 7.0 / 97.0).abs() < 1e-9);
        assert_eq!(lap(&mut Tlb::new(&l1, 21.0), BASE, 7, 16), 7.0);
        assert_eq!(lap(&mut Tlb::new(&l1, 21.0), BASE, 17, 128), 28.0);
    }

    #[test]
    fn xor_spreads_a_stride_that_linear_puts_into_one_set() {
        assert!((0..64).all(|n| set_of(Index::Linear, n * 128, 128) == 0));
        let mut seen: Vec<u32> = (0..128).map(|n| set_of(Index::Xor, n * 128, 128)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 128);
        assert_eq!(set_of(Index::Xor, 77, 1), 0);
    }

    #[test]
    fn a_shared_array_is_filled_by_both_sizes_and_separate_ones_are_not() {
        let both = Array {
            holds: vec![BASE, LARGE],
            ..Array::new(1, BASE, 1, 64, 0.0)
        };
        let mixed = |tlb: &mut Tlb| {
            let mut total = 0.0;
            for _ in 0..3 {
                total = (0..40).map(|n| tlb.access(BASE, n) + tlb.access(LARGE, n)).sum();
            }
            total
        };
        assert!(mixed(&mut Tlb::new(&[both], 10.0)) > 0.0);
        let apart = [Array::new(1, BASE, 1, 64, 0.0), Array::new(1, LARGE, 1, 64, 0.0)];
        assert_eq!(mixed(&mut Tlb::new(&apart, 10.0)), 0.0);
    }

    #[test]
    fn pseudo_lru_with_ways_that_are_no_power_of_two_misses_less_than_lru_just_beyond_its_size() {
        let cost = |replacement, pages| {
            let array = Array {
                replacement,
                ..Array::new(1, BASE, 1, 24, 0.0)
            };
            let mut tlb = Tlb::new(&[array], 1.0);
            (0..200)
                .map(|_| (0..pages).map(|n| tlb.access(BASE, n)).sum::<f64>())
                .skip(100)
                .sum::<f64>()
                / 100.0
                / pages as f64
        };
        for replacement in [Replacement::Lru, Replacement::TreePlru, Replacement::Random] {
            assert_eq!(cost(replacement, 24), 0.0, "{replacement:?}");
        }
        assert_eq!(cost(Replacement::Lru, 26), 1.0);
        assert!(cost(Replacement::TreePlru, 26) < 0.8);
        assert!(cost(Replacement::Random, 26) < 0.5);
    }
}
