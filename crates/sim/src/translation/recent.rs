//! Exact LRU of one set with many ways: what was looked up last, in order, and a hash table that finds it there.

/// A set. The tag 0 stands for an empty place.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    ways: u32,
    /// Tags that are held.
    count: u32,
    /// Tags by the moment of their last lookup; 0 where a tag was looked up again since, or went.
    log: Vec<u32>,
    /// The moment of the least recently used tag, if the set is full, or one before it.
    oldest: u32,
    /// The next moment. At the end of the log, tags get new moments in the same order.
    now: u32,
    /// Moments, by the hash of their tags, in the next free slot. A slot whose moment has no tag any more stays until then.
    slots: Vec<u32>,
}

const FREE: u32 = u32::MAX;
/// The most ways of a set.
pub(super) const MOST: u32 = 1 << 14;
/// Moments per way.
const MOMENTS: u32 = 8;
/// Slots per moment: most lookups end at the first slot.
const SLOTS: u32 = 2;

impl Recent {
    /// An empty set of 1 to [`MOST`] ways.
    pub(super) fn new(ways: u32) -> Self {
        debug_assert!((1..=MOST).contains(&ways));
        let moments = (MOMENTS * ways).next_power_of_two();
        Self {
            ways,
            count: 0,
            log: vec![0; moments as usize],
            oldest: 0,
            now: 0,
            slots: vec![FREE; (SLOTS * moments) as usize],
        }
    }

    /// Looks a tag up and makes it the latest; was it held?
    #[inline(always)]
    pub(super) fn touch(&mut self, tag: u32) -> bool {
        if self.now as usize == self.log.len() {
            self.renumber();
        }
        let mut slot = self.home(tag);
        let is_held = loop {
            let moment = self.slots[slot];
            if moment == FREE {
                break false;
            }
            if self.log[moment as usize] == tag {
                self.log[moment as usize] = 0;
                break true;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        };
        self.slots[slot] = self.now;
        self.log[self.now as usize] = tag;
        self.now += 1;
        if !is_held {
            self.make_room();
        }
        is_held
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(super) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        for tag in &mut self.log {
            if *tag != 0 && goes(*tag) {
                *tag = 0;
                self.count -= 1;
            }
        }
    }

    /// One tag more is held, and the least recently used one goes if they are too many.
    #[inline(always)]
    fn make_room(&mut self) {
        self.count += 1;
        if self.count <= self.ways {
            return;
        }
        self.count = self.ways;
        while self.log[self.oldest as usize] == 0 {
            self.oldest += 1;
        }
        self.log[self.oldest as usize] = 0;
    }

    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (tag.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn renumber(&mut self) {
        self.slots.fill(FREE);
        let mut count = 0;
        for moment in 0..self.log.len() {
            let tag = std::mem::take(&mut self.log[moment]);
            if tag == 0 {
                continue;
            }
            let mut slot = self.home(tag);
            while self.slots[slot] != FREE {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = count;
            self.log[count as usize] = tag;
            count += 1;
        }
        (self.oldest, self.now) = (0, count);
    }
}
