//! Simulated TLBs, which the methods are tested on: levels of set-associative arrays of any geometry, shared or separate by page size, with their costs.

use std::collections::{BTreeMap, HashMap};

use model::Bytes;
use model::tlb::Hash;

/// Which entry of a full set goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// The least recently used one.
    Lru,
    /// The one a binary tree of "other half" bits points at; for odd ways the missing leaves are skipped.
    TreePlru,
    /// The first one that was not used since all others were: a bit for each way, cleared when the last one is set.
    NotRecentlyUsed,
    /// One of the older quarter, by a fixed generator: nearly LRU.
    NearLru,
    /// Any, by a fixed generator.
    Random,
}

impl Replacement {
    pub(super) const ALL: [Self; 5] = [
        Self::Lru,
        Self::TreePlru,
        Self::NotRecentlyUsed,
        Self::NearLru,
        Self::Random,
    ];
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    /// 1 for the array asked first.
    pub level: u8,
    /// Page sizes it holds.
    pub holds: Vec<Bytes>,
    /// Sets, a power of two.
    pub sets: u32,
    /// Entries per set.
    pub ways: u32,
    /// How a page chooses its set.
    pub hash: Hash,
    /// Which entry of a full set goes.
    pub replacement: Replacement,
    /// Core cycles it takes to find out that an entry is here rather than a level earlier.
    pub cycles: f64,
}

impl Array {
    /// A linear LRU array that holds pages of one size.
    pub(super) fn new(level: u8, page: Bytes, sets: u32, ways: u32, cycles: f64) -> Self {
        Self {
            level,
            holds: vec![page],
            sets,
            ways,
            hash: Hash::Linear,
            replacement: Replacement::Lru,
            cycles,
        }
    }

    /// The same with pages scattered over its sets by XOR.
    pub(super) fn hashed(self) -> Self {
        Self {
            hash: Hash::Fold,
            ..self
        }
    }
}

/// A translation machine: arrays, and a walk behind them.
#[derive(Clone, Debug)]
pub(super) struct Tlb {
    arrays: Vec<(Array, Vec<Set>)>,
    walk_cycles: f64,
}

impl Tlb {
    /// An empty machine. A miss everywhere costs `walk_cycles` on top of the last level's cycles.
    pub(super) fn new(arrays: &[Array], walk_cycles: f64) -> Self {
        Self::beside(arrays, walk_cycles, |_, _| 0)
    }

    /// The same where contention holds so many entries of each set of an array all the time.
    pub(super) fn beside(arrays: &[Array], walk_cycles: f64, held: impl Fn(&Array, u32) -> u32) -> Self {
        let set = |array: &Array, number: u32| {
            let left = array.ways.saturating_sub(held(array, number));
            Set::new(array.replacement, left)
        };
        let mut arrays: Vec<_> = arrays
            .iter()
            .map(|array| {
                let sets = (0..array.sets).map(|number| set(array, number)).collect();
                (array.clone(), sets)
            })
            .collect();
        arrays.sort_by_key(|(array, _)| array.level);
        Self { arrays, walk_cycles }
    }

    /// Translates an access to page number `page` of that size, held as such, and returns what it costs beyond a first-level hit.
    /// For splintered pages pass the smaller of the guest's and the host's page.
    pub(super) fn access(&mut self, size: Bytes, page: u64) -> f64 {
        let mut cost = 0.0;
        let mut found = false;
        for (array, sets) in self.arrays.iter_mut().filter(|(array, _)| array.holds.contains(&size)) {
            if found {
                break;
            }
            cost += array.cycles;
            let set = &mut sets[array.hash.set(page, array.sets) as usize];
            // Two sizes never share a number: the tag carries the size. None is 0.
            found = set.access(page << 6 | u64::from(size.0.trailing_zeros()));
        }
        if found { cost } else { cost + self.walk_cycles }
    }
}

type Tag = u64;

/// From this many ways on, true LRU is kept by stamps in maps rather than by scanning.
const WIDE: u32 = 128;

#[derive(Clone, Debug)]
enum Set {
    Lru(Recency),
    Ways(Ways),
}

impl Set {
    fn new(replacement: Replacement, ways: u32) -> Self {
        match replacement {
            Replacement::Lru if ways > WIDE => Self::Lru(Recency::new(ways)),
            any => Self::Ways(Ways::new(any, ways as usize)),
        }
    }

    /// Looks a tag up and brings it in if it is not there; was it?
    fn access(&mut self, tag: Tag) -> bool {
        match self {
            Self::Lru(set) => set.access(tag),
            Self::Ways(set) => set.access(tag),
        }
    }
}

/// A set that is searched way by way.
#[derive(Clone, Debug)]
struct Ways {
    replacement: Replacement,
    /// Where their order is that of use the latest is first, and empty ways, which hold 0, are last.
    tags: Vec<Tag>,
    /// Which half of each pair of halves to leave; or which ways were used of late.
    bits: Vec<bool>,
    /// The generator of policies that draw.
    random: u64,
}

/// The way that holds a tag. Eight are compared at a time without a branch, which a compiler makes vectors of.
fn find(tags: &[Tag], tag: Tag) -> Option<usize> {
    let (eights, rest) = tags.as_chunks::<8>();
    let place = |tags: &[Tag]| tags.iter().position(|&held| held == tag);
    let holds = |eight: &[Tag; 8]| eight.iter().fold(false, |holds, &held| holds | (held == tag));
    match eights.iter().position(holds) {
        Some(eight) => place(&eights[eight]).map(|way| 8 * eight + way),
        None => place(rest).map(|way| 8 * eights.len() + way),
    }
}

impl Ways {
    fn new(replacement: Replacement, ways: usize) -> Self {
        Self {
            replacement,
            tags: vec![0; ways],
            bits: vec![false; ways.next_power_of_two()],
            random: 1,
        }
    }

    fn access(&mut self, tag: Tag) -> bool {
        let held = find(&self.tags, tag);
        if self.tags.is_empty() {
            return false;
        }
        let way = held.unwrap_or_else(|| self.victim());
        if matches!(self.replacement, Replacement::Lru | Replacement::NearLru) {
            self.tags[..=way].rotate_right(1);
            self.tags[0] = tag;
        } else {
            self.tags[way] = tag;
            self.mark(way);
        }
        held.is_some()
    }

    fn victim(&mut self) -> usize {
        let ways = self.tags.len();
        let empty = find(&self.tags, 0);
        empty.unwrap_or_else(|| match self.replacement {
            Replacement::Lru => ways - 1,
            Replacement::NearLru => ways - 1 - self.below(ways.div_ceil(4)),
            Replacement::TreePlru => self.pointed_at(),
            Replacement::NotRecentlyUsed => self.bits[..ways].iter().position(|used| !used).unwrap_or(0),
            Replacement::Random => self.below(ways),
        })
    }

    fn below(&mut self, most: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % most as u64) as usize
    }

    /// The way was used.
    fn mark(&mut self, way: usize) {
        if self.replacement == Replacement::TreePlru {
            let mut node = way + self.bits.len();
            while node > 1 {
                self.bits[node / 2] = node.is_multiple_of(2);
                node /= 2;
            }
            return;
        }
        self.bits[way] = true;
        if self.bits[..self.tags.len()].iter().all(|&used| used) {
            self.bits.fill(false);
            self.bits[way] = true;
        }
    }

    fn pointed_at(&self) -> usize {
        let (ways, leaves) = (self.tags.len(), self.bits.len());
        let mut node = 1;
        while node < leaves {
            let wanted = 2 * node + usize::from(self.bits[node]);
            let mut leftmost = wanted;
            while leftmost < leaves {
                leftmost *= 2;
            }
            node = if leftmost - leaves < ways { wanted } else { 2 * node };
        }
        node - leaves
    }
}

#[derive(Clone, Debug)]
struct Recency {
    ways: usize,
    now: u64,
    used: HashMap<Tag, u64>,
    order: BTreeMap<u64, Tag>,
}

impl Recency {
    fn new(ways: u32) -> Self {
        Self {
            ways: ways as usize,
            now: 0,
            used: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    fn access(&mut self, tag: Tag) -> bool {
        self.now += 1;
        let before = self.used.insert(tag, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.now, tag);
        if self.used.len() > self.ways
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Array, Replacement, Tlb};
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
        for replacement in Replacement::ALL {
            assert_eq!(cost(replacement, 24), 0.0, "{replacement:?}");
        }
        assert_eq!(cost(Replacement::Lru, 26), 1.0);
        assert!(cost(Replacement::TreePlru, 26) < 0.8);
        assert!(cost(Replacement::Random, 26) < 0.5);
        assert!((0.05..0.9).contains(&cost(Replacement::NearLru, 26)));
        assert!((0.05..0.9).contains(&cost(Replacement::NotRecentlyUsed, 26)));
    }

    #[test]
    fn what_another_holds_of_a_set_is_not_there_whatever_is_replaced() {
        for replacement in Replacement::ALL {
            let array = Array {
                replacement,
                ..Array::new(1, BASE, 2, 8, 0.0)
            };
            let beside = |held: u32| Tlb::beside(std::slice::from_ref(&array), 1.0, |_, set| held * (1 - set));
            assert_eq!(lap(&mut beside(3), BASE, 10, 1), 0.0, "{replacement:?}");
            assert!(lap(&mut beside(3), BASE, 11, 1) > 0.0, "{replacement:?}");
            assert_eq!(lap(&mut beside(8), BASE, 16, 1), 0.5, "{replacement:?}");
        }
    }
}
