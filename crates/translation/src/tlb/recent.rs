//! Exact LRU of many ways. The tags used last are compared one by one; behind them is a ring in order of use, with chains that
//! find a tag in it.
//!
//! Upper levels of page tables are used again and again between others that are not, so that most of what is held is in front.

use fearless_simd::Simd;

use crate::random::golden;
use crate::tlb::touch::TouchSet;

/// Tags in front of the ring.
const FRONT: usize = 4;
/// The fewest ways of a set.
const FEWEST: u32 = FRONT as u32 + 1;
/// The most ways of a set.
pub(crate) const MOST: u32 = 1 << 14;

/// A set. The tag 0 stands for an empty place; where one is in front, the ring is empty.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T> {
    front: [T; FRONT],
    ring: Ring<T>,
}

pub(crate) trait Tag: Copy + Default + PartialEq + Into<u64> {}

impl<T: Copy + Default + PartialEq + Into<u64>> Tag for T {}

impl<T: Tag> Recent<T> {
    /// An empty set of [`FEWEST`] to [`MOST`] ways.
    pub(crate) fn new(ways: u32) -> Self {
        debug_assert!((FEWEST..=MOST).contains(&ways));
        Self {
            front: [T::default(); FRONT],
            ring: Ring::new(ways - FRONT as u32),
        }
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(crate) fn drop_if(&mut self, goes: impl Fn(T) -> bool) {
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
    places: Vec<Place<T>>,
    /// By a hash of a tag: the first place of its chain. Most have one at most, and so no branch that a CPU cannot predict.
    chains: Vec<u16>,
    /// Bits of a hash that do not choose a chain.
    rest: u32,
}

#[derive(Clone, Debug, Default)]
struct Place<T> {
    tag: T,
    newer: u16,
    older: u16,
    /// The next place whose tag has the same chain.
    chained: u16,
}

/// Chains per way.
const CHAINS: u32 = 16;

impl<T: Tag> Ring<T> {
    fn new(ways: u32) -> Self {
        let end = ways as u16;
        let nothing = end + 1;
        let place = |number: u16| Place {
            tag: T::default(),
            newer: number.checked_sub(1).unwrap_or(end),
            older: if number < end { number + 1 } else { 0 },
            chained: nothing,
        };
        let chains = (CHAINS * ways).next_power_of_two();
        Self {
            places: (0..=nothing).map(place).collect(),
            chains: vec![nothing; chains as usize],
            rest: u64::BITS - chains.trailing_zeros(),
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
        let oldest = self.places[usize::from(self.end())].newer;
        // Which of the two is not to be predicted.
        let place = std::hint::select_unpredictable(is_held, held, oldest);
        if self.places[usize::from(place)].tag != T::default() {
            self.unchain(place);
        }
        self.fill(place, into);
        is_held
    }

    /// Takes the latest tag out; an empty place has none.
    fn take_latest(&mut self) -> T {
        let latest = self.places[usize::from(self.end())].older;
        let tag = self.places[usize::from(latest)].tag;
        if tag != T::default() {
            self.empty(latest);
        }
        tag
    }

    fn drop_if(&mut self, goes: impl Fn(T) -> bool) {
        for place in 0..self.end() {
            let tag = self.places[usize::from(place)].tag;
            if tag != T::default() && goes(tag) {
                self.empty(place);
            }
        }
    }

    fn end(&self) -> u16 {
        self.places.len() as u16 - 2
    }

    fn nothing(&self) -> u16 {
        self.places.len() as u16 - 1
    }

    /// The place of a tag, or [`Self::nothing`].
    #[inline(always)]
    fn find(&self, tag: T) -> u16 {
        let nothing = self.nothing();
        let first = self.chains[self.chain_of(tag)];
        let (is_first, next) = (
            self.places[usize::from(first)].tag == tag,
            self.places[usize::from(first)].chained,
        );
        if next == nothing {
            return std::hint::select_unpredictable(is_first, first, nothing);
        }
        let mut place = first;
        while place != nothing && self.places[usize::from(place)].tag != tag {
            place = self.places[usize::from(place)].chained;
        }
        place
    }

    /// Puts a tag that is not held into a place, and makes it the latest.
    #[inline(always)]
    fn fill(&mut self, place: u16, tag: T) {
        let chain = self.chain_of(tag);
        self.places[usize::from(place)].tag = tag;
        self.places[usize::from(place)].chained = self.chains[chain];
        self.chains[chain] = place;
        self.put_behind(self.end(), place);
    }

    /// Empties a place, which is filled before anything goes.
    fn empty(&mut self, place: u16) {
        self.unchain(place);
        self.places[usize::from(place)].tag = T::default();
        let oldest = self.places[usize::from(self.end())].newer;
        if oldest != place {
            self.put_behind(oldest, place);
        }
    }

    /// Moves a place to behind another one, as the next older one.
    #[inline(always)]
    fn put_behind(&mut self, newer: u16, place: u16) {
        let (before, behind) = (
            self.places[usize::from(place)].newer,
            self.places[usize::from(place)].older,
        );
        self.places[usize::from(before)].older = behind;
        self.places[usize::from(behind)].newer = before;
        let older = self.places[usize::from(newer)].older;
        self.places[usize::from(newer)].older = place;
        self.places[usize::from(older)].newer = place;
        (
            self.places[usize::from(place)].newer,
            self.places[usize::from(place)].older,
        ) = (newer, older);
    }

    /// Takes a place out of its chain.
    #[inline(always)]
    fn unchain(&mut self, place: u16) {
        let chain = self.chain_of(self.places[usize::from(place)].tag);
        let chained = self.places[usize::from(place)].chained;
        let mut before = self.chains[chain];
        if before == place {
            self.chains[chain] = chained;
            return;
        }
        while self.places[usize::from(before)].chained != place {
            before = self.places[usize::from(before)].chained;
        }
        self.places[usize::from(before)].chained = chained;
    }

    /// Tags that follow each other have chains of their own.
    #[inline(always)]
    fn chain_of(&self, tag: T) -> usize {
        (golden(tag.into()) >> self.rest) as usize
    }
}
