//! Exact LRU of many ways. The tags used last are compared one by one; behind them is a ring in order of use, with chains by low
//! bits that find a tag in it.
//!
//! Upper levels of page tables are used again and again between others that are not, so that most of what is held is in front.

use fearless_simd::Simd;

use super::sets::TouchSet;

/// Tags in front of the ring.
const FRONT: usize = 4;
/// The fewest ways of a set.
pub(super) const FEWEST: u32 = FRONT as u32 + 1;
/// The most ways of a set.
pub(super) const MOST: u32 = 1 << 14;

/// A set. The tag 0 stands for an empty place; where one is in front, the ring is empty.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    front: [T; FRONT],
    ring: Ring<T>,
}

/// What a tag can be.
pub(super) trait Tag: Copy + Default + PartialEq + Into<u64> {}

impl<T: Copy + Default + PartialEq + Into<u64>> Tag for T {}

impl<T: Tag> Recent<T> {
    /// An empty set of [`FEWEST`] to [`MOST`] ways.
    pub(super) fn new(ways: u32) -> Self {
        debug_assert!((FEWEST..=MOST).contains(&ways));
        Self {
            front: [T::default(); FRONT],
            ring: Ring::new(ways - FRONT as u32),
        }
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(super) fn drop_if(&mut self, goes: impl Fn(T) -> bool) {
        self.ring.drop_if(&goes);
        let stays = |tag: &T| *tag != T::default() && !goes(*tag);
        let mut kept: Vec<T> = self.front.into_iter().filter(stays).collect();
        kept.resize_with(FRONT, || self.ring.take_latest());
        self.front.copy_from_slice(&kept);
    }
}

impl<T: Tag> TouchSet<T> for Recent<T> {
    #[inline(always)]
    fn touch<S: Simd>(&mut self, _: S, tag: T) -> bool {
        let [first, second, third, fourth] = self.front;
        let first_holds = tag == first;
        let two_hold = first_holds | (tag == second);
        let three_hold = two_hold | (tag == third);
        self.front = [
            tag,
            if first_holds { second } else { first },
            if two_hold { third } else { second },
            if three_hold { fourth } else { third },
        ];
        three_hold | (tag == fourth) || self.ring.exchange(tag, fourth)
    }
}

/// The ways behind.
#[derive(Clone, Debug)]
struct Ring<T> {
    /// By place; two more stand behind the places. [`Self::end`] is the end of the ring: what follows it was used last, and what
    /// stands before it goes next. [`Self::nothing`] ends chains.
    tags: Vec<T>,
    newer: Vec<u16>,
    older: Vec<u16>,
    /// The next place whose tag has the same chain.
    chained: Vec<u16>,
    /// By the low bits of a tag: the first place of its chain. Most have one at most, and so no branch that a CPU cannot predict.
    chains: Vec<u16>,
}

/// Chains per way.
const CHAINS: u32 = 16;

impl<T: Tag> Ring<T> {
    fn new(ways: u32) -> Self {
        let end = ways as u16;
        let nothing = end + 1;
        let places = usize::from(nothing) + 1;
        Self {
            tags: vec![T::default(); places],
            newer: std::iter::once(end).chain(0..=end).collect(),
            older: (1..=end).chain([0, 0]).collect(),
            chained: vec![nothing; places],
            chains: vec![nothing; (CHAINS * ways).next_power_of_two() as usize],
        }
    }

    /// Takes a tag out, if it is held, and makes another one the latest, unless that stands for an empty place; was it held?
    #[inline(always)]
    fn exchange(&mut self, out: T, into: T) -> bool {
        let held = self.find(out);
        let is_held = held != self.nothing();
        if into == T::default() {
            return is_held;
        }
        let oldest = self.newer[usize::from(self.end())];
        let place = if is_held { held } else { oldest };
        if self.tags[usize::from(place)] != T::default() {
            self.unchain(place);
        }
        self.fill(place, into);
        is_held
    }

    /// Takes the latest tag out; an empty place has none.
    fn take_latest(&mut self) -> T {
        let latest = self.older[usize::from(self.end())];
        let tag = self.tags[usize::from(latest)];
        if tag != T::default() {
            self.empty(latest);
        }
        tag
    }

    fn drop_if(&mut self, goes: impl Fn(T) -> bool) {
        for place in 0..self.end() {
            let tag = self.tags[usize::from(place)];
            if tag != T::default() && goes(tag) {
                self.empty(place);
            }
        }
    }

    fn end(&self) -> u16 {
        self.tags.len() as u16 - 2
    }

    fn nothing(&self) -> u16 {
        self.tags.len() as u16 - 1
    }

    /// The place of a tag, or [`Self::nothing`].
    #[inline(always)]
    fn find(&self, tag: T) -> u16 {
        let nothing = self.nothing();
        let first = self.chains[self.chain_of(tag)];
        let (is_first, next) = (self.tags[usize::from(first)] == tag, self.chained[usize::from(first)]);
        if next == nothing {
            return if is_first { first } else { nothing };
        }
        let mut place = first;
        while place != nothing && self.tags[usize::from(place)] != tag {
            place = self.chained[usize::from(place)];
        }
        place
    }

    /// Puts a tag that is not held into a place, and makes it the latest.
    #[inline(always)]
    fn fill(&mut self, place: u16, tag: T) {
        let chain = self.chain_of(tag);
        self.tags[usize::from(place)] = tag;
        self.chained[usize::from(place)] = self.chains[chain];
        self.chains[chain] = place;
        self.put_behind(self.end(), place);
    }

    /// Empties a place, which is filled before anything goes.
    fn empty(&mut self, place: u16) {
        self.unchain(place);
        self.tags[usize::from(place)] = T::default();
        let oldest = self.newer[usize::from(self.end())];
        if oldest != place {
            self.put_behind(oldest, place);
        }
    }

    /// Moves a place to behind another one, as the next older one.
    #[inline(always)]
    fn put_behind(&mut self, newer: u16, place: u16) {
        let (before, behind) = (self.newer[usize::from(place)], self.older[usize::from(place)]);
        self.older[usize::from(before)] = behind;
        self.newer[usize::from(behind)] = before;
        let older = self.older[usize::from(newer)];
        self.older[usize::from(newer)] = place;
        self.newer[usize::from(older)] = place;
        (self.newer[usize::from(place)], self.older[usize::from(place)]) = (newer, older);
    }

    /// Takes a place out of its chain.
    #[inline(always)]
    fn unchain(&mut self, place: u16) {
        let chain = self.chain_of(self.tags[usize::from(place)]);
        let chained = self.chained[usize::from(place)];
        let mut before = self.chains[chain];
        if before == place {
            self.chains[chain] = chained;
            return;
        }
        while self.chained[usize::from(before)] != place {
            before = self.chained[usize::from(before)];
        }
        self.chained[usize::from(before)] = chained;
    }

    /// Tags that follow each other have chains of their own; higher bits are folded in, for those a power of two apart.
    #[inline(always)]
    fn chain_of(&self, tag: T) -> usize {
        let tag: u64 = tag.into();
        (tag ^ tag >> 11 ^ tag >> 22) as usize & (self.chains.len() - 1)
    }
}
