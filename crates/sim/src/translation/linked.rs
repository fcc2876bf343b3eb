//! Exact LRU of one set with many ways: a ring in order of use and a hash table, so that a lookup costs the same for any number of ways.

/// A set. The tag 0 stands for an empty place.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    ways: Vec<Way>,
    /// The way used last. The next one on the newer side is the oldest one.
    latest: u16,
    /// Numbers of ways, by the hash of their tags, in the next free slot. A slot whose way has another tag by now stays until there
    /// are many of these.
    slots: Vec<u16>,
    used_slots: usize,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    tag: u32,
    newer: u16,
    older: u16,
}

const FREE: u16 = u16::MAX;
/// The most ways of a set.
pub(super) const MOST: u32 = 1 << 14;
/// Slots per way, of which a quarter is used at most: most lookups then end at the first slot.
const SLOTS: usize = 32;

impl Linked {
    /// An empty set of 1 to [`MOST`] ways.
    pub(super) fn new(ways: u32) -> Self {
        debug_assert!((1..=MOST).contains(&ways));
        let count = ways as u16;
        let way = |number: u16| Way {
            tag: 0,
            newer: (number + count - 1) % count,
            older: (number + 1) % count,
        };
        Self {
            ways: (0..count).map(way).collect(),
            latest: 0,
            slots: vec![FREE; (SLOTS * ways as usize).next_power_of_two()],
            used_slots: 0,
        }
    }

    /// Looks a tag up and makes it the latest; was it held?
    #[inline]
    pub(super) fn touch(&mut self, tag: u32) -> bool {
        let latest = self.ways[usize::from(self.latest)];
        if latest.tag == tag {
            return true;
        }
        let mut slot = self.home(tag);
        loop {
            let way = self.slots[slot];
            if way == FREE {
                break;
            }
            if self.ways[usize::from(way)].tag == tag {
                self.make_latest(way);
                return true;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.latest = latest.newer;
        self.ways[usize::from(self.latest)].tag = tag;
        self.slots[slot] = self.latest;
        self.used_slots += 1;
        if self.used_slots > self.slots.len() / 4 {
            self.fill_slots();
        }
        false
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(super) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        let goes = |tag: u32| tag != 0 && goes(tag);
        if !self.ways.iter().any(|way| goes(way.tag)) {
            return;
        }
        let mut kept = Vec::with_capacity(self.ways.len());
        let mut way = self.latest;
        for _ in 0..self.ways.len() {
            let Way { tag, older, .. } = self.ways[usize::from(way)];
            if tag != 0 && !goes(tag) {
                kept.push(tag);
            }
            way = older;
        }
        *self = Self::new(self.ways.len() as u32);
        kept.iter().rev().for_each(|&tag| _ = self.touch(tag));
    }

    fn make_latest(&mut self, way: u16) {
        let oldest = self.ways[usize::from(self.latest)].newer;
        if way != oldest {
            let Way { newer, older, .. } = self.ways[usize::from(way)];
            self.ways[usize::from(newer)].older = older;
            self.ways[usize::from(older)].newer = newer;
            self.join(oldest, way);
            self.join(way, self.latest);
        }
        self.latest = way;
    }

    /// Puts two ways beside each other.
    fn join(&mut self, newer: u16, older: u16) {
        self.ways[usize::from(newer)].older = older;
        self.ways[usize::from(older)].newer = newer;
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (tag.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn fill_slots(&mut self) {
        self.slots.fill(FREE);
        self.used_slots = 0;
        for number in 0..self.ways.len() {
            let tag = self.ways[number].tag;
            if tag == 0 {
                continue;
            }
            let mut slot = self.home(tag);
            while self.slots[slot] != FREE {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = number as u16;
            self.used_slots += 1;
        }
    }
}
