//! The sets of an associative array under any replacement policy, searched way by way.

model::table! {
    /// Which entry of a full set goes, and whether the order of a set's tags is that of their use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Replacement: bool {
        /// The least recently used one.
        Lru = true,
        /// The one a binary tree of "other half" bits points at; for odd ways the missing leaves are skipped.
        TreePlru = false,
        /// The first one that was not used since all others were: a bit for each way, cleared when the last one is set.
        NotRecentlyUsed = false,
        /// One of the older quarter, by a fixed generator: nearly LRU.
        NearLru = true,
        /// Any, by a fixed generator.
        Random = false,
    }
}

impl Replacement {
    /// Is the order of a set's tags that of their use?
    #[inline]
    fn is_ordered(self) -> bool {
        self.row()
    }
}

/// The way that holds a tag. Eight are compared at a time without a branch, which a compiler makes vectors of.
#[inline]
fn find<T: Copy + PartialEq>(tags: &[T], tag: T) -> Option<usize> {
    let (eights, rest) = tags.as_chunks::<8>();
    let place = |tags: &[T]| tags.iter().position(|&held| held == tag);
    let holds = |eight: &[T; 8]| eight.iter().fold(false, |holds, &held| holds | (held == tag));
    match eights.iter().position(holds) {
        Some(eight) => place(&eights[eight]).map(|way| 8 * eight + way),
        None => place(rest).map(|way| 8 * eights.len() + way),
    }
}

/// Sets of tags. The default tag stands for an empty way.
#[derive(Clone, Debug)]
pub struct Sets<T> {
    replacement: Replacement,
    ways: usize,
    /// Those of each set. Where their order is that of use the latest is first, and empty ways are last.
    tags: Vec<T>,
    /// By set: which half of each pair of halves to leave; or which ways were used of late.
    bits: Vec<bool>,
    /// By set: generators of policies that draw.
    random: Vec<u64>,
}

impl<T: Copy + Default + PartialEq> Sets<T> {
    pub fn new(sets: u32, ways: u32, replacement: Replacement) -> Self {
        let (count, ways) = (sets as usize, ways as usize);
        let bits = match replacement {
            Replacement::TreePlru | Replacement::NotRecentlyUsed => count * ways.next_power_of_two(),
            Replacement::Lru | Replacement::NearLru | Replacement::Random => 0,
        };
        let seed = |set: u32| u64::from(set).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self {
            replacement,
            ways,
            // Written, where `vec!` leaves zeroes to the kernel: a page that is read before it is written is mapped twice.
            tags: std::iter::repeat_n(T::default(), count * ways).collect(),
            bits: vec![false; bits],
            random: (0..sets).map(seed).collect(),
        }
    }

    /// Looks a tag up in a set and brings it in if it is not there; was it?
    #[inline]
    pub fn touch(&mut self, set: usize, tag: T) -> bool {
        let tags = &self.tags[set * self.ways..][..self.ways];
        if tags.first() == Some(&tag) && self.replacement == Replacement::Lru {
            return true;
        }
        let held = find(tags, tag);
        let way = match held {
            Some(way) => way,
            None if tags.is_empty() => return false,
            // An empty one, or else the oldest.
            None if self.replacement == Replacement::Lru => self.ways - 1,
            None => self.victim(set),
        };
        let tags = &mut self.tags[set * self.ways..][..self.ways];
        if self.replacement.is_ordered() {
            tags.copy_within(..way, 1);
            tags[0] = tag;
        } else {
            tags[way] = tag;
            self.mark(set, way);
        }
        held.is_some()
    }

    /// A set's first and last tags.
    #[inline]
    pub(crate) fn ends(&self, set: usize) -> [Option<&T>; 2] {
        let tags = &self.tags[set * self.ways..][..self.ways];
        [tags.first(), tags.last()]
    }

    /// Drops a tag; the others keep their order, or their places.
    pub(crate) fn drop(&mut self, set: usize, tag: T) {
        let tags = &mut self.tags[set * self.ways..][..self.ways];
        if let Some(way) = tags.iter().position(|&held| held == tag) {
            tags[way] = T::default();
            if self.replacement.is_ordered() {
                tags[way..].rotate_left(1);
            }
        }
    }

    /// Drops all tags.
    pub(crate) fn flush(&mut self) {
        self.tags.fill(T::default());
    }

    fn victim(&mut self, set: usize) -> usize {
        let ways = self.ways;
        let empty = self.tags[set * ways..][..ways]
            .iter()
            .position(|&tag| tag == T::default());
        empty.unwrap_or_else(|| match self.replacement {
            Replacement::Lru => ways - 1,
            Replacement::NearLru => ways - 1 - self.below(set, ways.div_ceil(4)),
            Replacement::TreePlru => self.pointed_at(set),
            Replacement::NotRecentlyUsed => self.bits(set)[..ways].iter().position(|used| !used).unwrap_or(0),
            Replacement::Random => self.below(set, ways),
        })
    }

    fn below(&mut self, set: usize, most: usize) -> usize {
        let random = &mut self.random[set];
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random % most as u64) as usize
    }

    fn bits(&mut self, set: usize) -> &mut [bool] {
        let leaves = self.ways.next_power_of_two();
        &mut self.bits[set * leaves..][..leaves]
    }

    /// The way was used.
    fn mark(&mut self, set: usize, way: usize) {
        let ways = self.ways;
        match self.replacement {
            Replacement::TreePlru => {
                let bits = self.bits(set);
                let mut node = way + bits.len();
                while node > 1 {
                    bits[node / 2] = node.is_multiple_of(2);
                    node /= 2;
                }
            }
            Replacement::NotRecentlyUsed => {
                let bits = self.bits(set);
                bits[way] = true;
                if bits[..ways].iter().all(|&used| used) {
                    bits.fill(false);
                    bits[way] = true;
                }
            }
            Replacement::Lru | Replacement::NearLru | Replacement::Random => {}
        }
    }

    fn pointed_at(&mut self, set: usize) -> usize {
        let ways = self.ways;
        let bits = self.bits(set);
        let leaves = bits.len();
        let mut node = 1;
        while node < leaves {
            let wanted = 2 * node + usize::from(bits[node]);
            let mut leftmost = wanted;
            while leftmost < leaves {
                leftmost *= 2;
            }
            node = if leftmost - leaves < ways { wanted } else { 2 * node };
        }
        node - leaves
    }
}
