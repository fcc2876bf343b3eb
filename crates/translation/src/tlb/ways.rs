//! One set of an associative array under any replacement policy, searched way by way.

/// Which entry of a full set goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used one.
    Lru,
    /// The one that came in first: no TLB is documented to use it, simulators offer it.
    Fifo,
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
    /// All that TLBs use or may use.
    pub const ALL: [Self; 5] = [
        Self::Lru,
        Self::TreePlru,
        Self::NotRecentlyUsed,
        Self::NearLru,
        Self::Random,
    ];
}

/// One set of tags.
#[derive(Clone, Debug)]
pub struct Ways<T> {
    replacement: Replacement,
    tags: Vec<Option<T>>,
    /// Which half of each pair of halves to leave; or which ways were used of late.
    bits: Vec<bool>,
    random: u64,
}

impl<T: Copy + PartialEq> Ways<T> {
    /// An empty set. `seed` is that of policies that draw.
    pub fn new(ways: u32, replacement: Replacement, seed: u64) -> Self {
        let ways = ways as usize;
        Self {
            replacement,
            tags: vec![None; ways],
            bits: vec![false; ways.next_power_of_two()],
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Looks a tag up and brings it in if it is not there; was it?
    pub fn access(&mut self, tag: T) -> bool {
        if self.tags.is_empty() {
            return false;
        }
        let hit = self.tags.iter().position(|&held| held == Some(tag));
        let way = hit.unwrap_or_else(|| self.victim());
        self.tags[way] = Some(tag);
        match self.replacement {
            // In order of use, the latest first.
            Replacement::Lru | Replacement::NearLru => self.tags[..=way].rotate_right(1),
            Replacement::Fifo if hit.is_none() => self.tags[..=way].rotate_right(1),
            Replacement::TreePlru => self.point_away_from(way),
            Replacement::NotRecentlyUsed => self.mark(way),
            Replacement::Fifo | Replacement::Random => {}
        }
        hit.is_some()
    }

    /// Drops the tags that are to go; the others keep their places.
    pub fn drop_if(&mut self, goes: impl Fn(T) -> bool) {
        for held in &mut self.tags {
            if held.is_some_and(&goes) {
                *held = None;
            }
        }
    }

    fn victim(&mut self) -> usize {
        let ways = self.tags.len();
        if let Some(empty) = self.tags.iter().position(Option::is_none) {
            return empty;
        }
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => ways - 1,
            Replacement::NearLru => ways - 1 - self.below(ways.div_ceil(4)),
            Replacement::TreePlru => self.pointed_at(),
            Replacement::NotRecentlyUsed => self.bits[..ways].iter().position(|used| !used).unwrap_or(0),
            Replacement::Random => self.below(ways),
        }
    }

    fn below(&mut self, most: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % most as u64) as usize
    }

    fn mark(&mut self, way: usize) {
        self.bits[way] = true;
        if self.bits[..self.tags.len()].iter().all(|&used| used) {
            self.bits.fill(false);
            self.bits[way] = true;
        }
    }

    fn pointed_at(&self) -> usize {
        let leaves = self.bits.len();
        let mut node = 1;
        while node < leaves {
            let wanted = 2 * node + usize::from(self.bits[node]);
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
        let mut node = way + self.bits.len();
        while node > 1 {
            self.bits[node / 2] = node.is_multiple_of(2);
            node /= 2;
        }
    }
}
