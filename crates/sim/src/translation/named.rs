//! Exact LRU of one set of names: a table by name says when each was used last, so that nothing is searched.

/// Names from 0 on, as [`super::names::Names`] gives them out. The table has four bytes for each name up to the largest one.
#[derive(Clone, Debug)]
pub(super) struct Named {
    ways: u32,
    /// Names that are held.
    count: u32,
    /// By name: the moment of its last lookup; 0 if there was none. A name is held if that moment is not before `oldest`.
    last: Vec<u32>,
    /// By moment, round and round: the name that was looked up then.
    log: Vec<u32>,
    /// A bit for each moment of the log whose name was not looked up again since.
    is_last: Vec<u64>,
    /// All moments before it are of names that went, or were looked up again.
    oldest: u32,
    /// The next moment.
    now: u32,
}

/// Moments per way: how seldom the log is written anew if old names stay.
const MOMENTS: u32 = 16;
/// Moments of the shortest log: one word of bits.
const LEAST: u32 = 64;

impl Named {
    /// An empty set.
    pub(super) fn new(ways: u32) -> Self {
        let moments = (MOMENTS * ways).next_power_of_two().max(LEAST);
        Self {
            ways,
            count: 0,
            last: Vec::new(),
            log: vec![0; moments as usize],
            is_last: vec![0; (moments / 64) as usize],
            oldest: 1,
            now: 1,
        }
    }

    /// Looks a name up and makes it the latest; was it held?
    #[inline(always)]
    pub(super) fn touch(&mut self, name: u32) -> bool {
        if self.now - self.oldest == self.log.len() as u32 {
            self.renumber();
        }
        if name as usize >= self.last.len() {
            self.grow(name);
        }
        let before = self.last[name as usize];
        let is_held = before >= self.oldest;
        // The bit of the moment of a name that went may be another's by now.
        let word = self.word(before);
        self.is_last[word] &= !(u64::from(is_held) << (before % 64));
        self.record(name);
        self.make_room(!is_held);
        is_held
    }

    /// The name was looked up now.
    #[inline(always)]
    fn record(&mut self, name: u32) {
        let (word, place) = (self.word(self.now), self.now as usize & (self.log.len() - 1));
        self.last[name as usize] = self.now;
        self.is_last[word] |= 1 << (self.now % 64);
        self.log[place] = name;
        self.now += 1;
    }

    /// If there is one name more, and it is one too many, the least recently used one goes. No branch could learn whether.
    #[inline(always)]
    fn make_room(&mut self, is_more: bool) {
        self.count += u32::from(is_more);
        let goes = self.count > self.ways;
        self.count -= u32::from(goes);
        let mut moment = self.oldest;
        let mut bits = self.is_last[self.word(moment)] >> (moment % 64);
        while bits == 0 {
            moment = (moment | 63) + 1;
            bits = self.is_last[self.word(moment)];
        }
        moment += bits.trailing_zeros();
        let word = self.word(moment);
        self.is_last[word] &= !(u64::from(goes) << (moment % 64));
        self.oldest = moment + u32::from(goes);
    }

    /// The word that has a moment's bit.
    #[inline(always)]
    fn word(&self, moment: u32) -> usize {
        (moment / 64) as usize & (self.is_last.len() - 1)
    }

    #[cold]
    fn grow(&mut self, name: u32) {
        let names = (name as usize + 1).next_power_of_two();
        self.last.resize(names, 0);
    }

    /// Gives the names that are held the next moments in the same order, so that none is far behind.
    #[cold]
    fn renumber(&mut self) {
        let is_last = |moment: &u32| self.is_last[self.word(*moment)] >> (moment % 64) & 1 == 1;
        let moments = (self.oldest..self.now).filter(is_last);
        let held: Vec<u32> = moments
            .map(|moment| self.log[moment as usize & (self.log.len() - 1)])
            .collect();
        self.is_last.fill(0);
        if self.now > u32::MAX / 2 {
            self.last.fill(0);
            self.now = 1;
        }
        self.oldest = self.now;
        for name in held {
            self.record(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Named;
    use crate::ways::{Replacement, Ways};

    #[test]
    fn a_set_without_ways_holds_nothing() {
        let mut set = Named::new(0);
        assert!((0..10_000).all(|number| !set.touch(number % 3)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn it_holds_what_a_list_holds(
            ways in prop_oneof![1_u32..=40, Just(64), Just(129), Just(1000)],
            names in prop::collection::vec((1_u32..100_000, any::<bool>()), 1..8000),
            range in prop_oneof![Just(2_u32), 3_u32..60, 60_u32..3000],
        ) {
            let mut set = Named::new(ways);
            let mut list: Ways<u32> = Ways::new(ways, Replacement::Lru, 0);
            for (number, (name, is_far)) in names.into_iter().enumerate() {
                let name = if is_far && number % 7 == 0 { name } else { name % range };
                prop_assert_eq!(set.touch(name), list.access(name), "{}", number);
            }
        }
    }
}
