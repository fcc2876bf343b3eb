//! Exact LRU of many ways that misses often: a log of uses in their order, with chains that find the last use of a tag.
//!
//! A lookup writes one line of the log and moves nothing, so that a tag that is not held costs no more than one that is.

use fearless_simd::Simd;

use crate::random::golden;
use crate::tlb::touch::TouchSet;

/// Tags before the log, which are used again and again between others.
const FRONT: usize = 2;
/// The fewest ways of a set.
pub(crate) const FEWEST: u32 = FRONT as u32 + 1;
/// The most ways of a set.
pub(crate) const MOST: u32 = 1 << 14;
/// Lines of the log, and chains, per way.
const LINES: usize = 16;
const CHAINS: u32 = 16;

/// A set. The tag 0 stands for an empty place.
#[derive(Clone, Debug)]
pub(crate) struct Uses {
    /// The latest first.
    front: [u64; FRONT],
    log: Log,
}

impl Uses {
    /// An empty set of [`FEWEST`] to [`MOST`] ways.
    pub(crate) fn new(ways: u32) -> Self {
        debug_assert!((FEWEST..=MOST).contains(&ways));
        Self {
            front: [0; FRONT],
            log: Log::new(ways - FRONT as u32),
        }
    }
}

impl TouchSet<u64> for Uses {
    #[inline(always)]
    fn touch<S: Simd>(&mut self, _: S, tag: u64) -> bool {
        let [latest, other] = self.front;
        if tag == latest {
            return true;
        }
        self.front = [tag, latest];
        tag == other || self.log.exchange(tag, other)
    }
}

/// The last use of a tag, or one that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    tag: u64,
    /// The use before it of another tag with the same chain.
    before: u32,
}

/// The ways behind the front. As many uses as there are ways are alive; all are after [`Self::oldest`], which is alive.
#[derive(Clone, Debug)]
struct Log {
    /// From 1 on; behind the last one is the place of the next.
    uses: Vec<Use>,
    next: u32,
    oldest: u32,
    /// A bit for each use whose tag was taken out again.
    over: Vec<u64>,
    /// By a hash of a tag: the last use in its chain. Those before the oldest end it.
    chains: Vec<u32>,
    /// Bits of a hash that do not choose a chain.
    rest: u32,
}

impl Log {
    fn new(ways: u32) -> Self {
        let (lines, chains) = (LINES * ways as usize + 64, (CHAINS * ways).next_power_of_two());
        Self {
            uses: vec![Use::default(); lines],
            next: ways + 1,
            oldest: 1,
            over: vec![0; lines.div_ceil(64) + 1],
            chains: vec![0; chains as usize],
            rest: u64::BITS - chains.trailing_zeros(),
        }
    }

    /// Takes a tag out, if it is held, and makes another one the latest; was it held?
    #[inline(always)]
    fn exchange(&mut self, out: u64, into: u64) -> bool {
        let chain = self.chain_of(out);
        let last = self.chains[chain];
        let is_held = last >= self.oldest && self.take_out(chain, last, out);
        if !is_held {
            self.oldest = self.alive_from(self.oldest + 1);
        }
        self.write(into);
        is_held
    }

    /// The tag is in its chain if at all.
    #[inline(always)]
    fn take_out(&mut self, chain: usize, last: u32, tag: u64) -> bool {
        let place = self.uses[last as usize];
        if place.tag == tag {
            self.chains[chain] = place.before;
            self.end(last);
            return true;
        }
        self.take_out_behind(last, tag)
    }

    #[cold]
    fn take_out_behind(&mut self, mut after: u32, tag: u64) -> bool {
        loop {
            let place = self.uses[after as usize].before;
            if place < self.oldest {
                return false;
            }
            if self.uses[place as usize].tag == tag {
                self.uses[after as usize].before = self.uses[place as usize].before;
                self.end(place);
                return true;
            }
            after = place;
        }
    }

    #[inline(always)]
    fn end(&mut self, place: u32) {
        self.over[place as usize / 64] |= 1 << (place % 64);
        if place == self.oldest {
            self.oldest = self.alive_from(place + 1);
        }
    }

    /// The first use from there on that is not over, which may be the next one.
    #[inline(always)]
    fn alive_from(&self, from: u32) -> u32 {
        let alive = !self.over[from as usize / 64] >> (from % 64);
        if alive != 0 {
            return from + alive.trailing_zeros();
        }
        let mut word = from / 64 + 1;
        while self.over[word as usize] == u64::MAX {
            word += 1;
        }
        word * 64 + self.over[word as usize].trailing_ones()
    }

    #[inline(always)]
    fn write(&mut self, tag: u64) {
        if self.next as usize == self.uses.len() {
            self.shorten();
        }
        let chain = self.chain_of(tag);
        let before = self.chains[chain];
        self.uses[self.next as usize] = Use { tag, before };
        self.chains[chain] = self.next;
        self.next += 1;
    }

    /// Moves the uses that are alive to the beginning.
    #[cold]
    fn shorten(&mut self) {
        let (from, end) = (self.oldest, self.next);
        let over = |place: u32| self.over[place as usize / 64] >> (place % 64) & 1 == 1;
        let alive = (from..end).filter(|&place| !over(place));
        let (empty, tags): (Vec<u64>, Vec<u64>) = alive
            .map(|place| self.uses[place as usize].tag)
            .partition(|&tag| tag == 0);
        self.chains.fill(0);
        self.over.fill(0);
        // Empty places have no chain.
        self.uses[..=empty.len()].fill(Use::default());
        (self.oldest, self.next) = (1, empty.len() as u32 + 1);
        tags.into_iter().for_each(|tag| self.write(tag));
    }

    /// Tags that follow each other have chains of their own.
    #[inline(always)]
    fn chain_of(&self, tag: u64) -> usize {
        (golden(tag) >> self.rest) as usize
    }
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};

    use super::{FEWEST, Uses};
    use crate::random::{Chance, golden};
    use crate::tlb::touch::TouchSet;
    use crate::tlb::ways::{Replacement, Ways};

    /// What a list holds, in a set of so many ways, for tags that are looked up one after the other.
    fn assert_same(ways: u32, tags: impl Iterator<Item = u64>) {
        let mut uses = Uses::new(ways);
        let mut list: Ways<u64> = Ways::new(ways, Replacement::Lru, 0);
        for (number, tag) in tags.enumerate() {
            let is_held = dispatch!(Level::new(), simd => uses.touch(simd, tag));
            assert_eq!(is_held, list.access(tag), "{ways} ways, lookup {number}");
        }
    }

    #[test]
    fn a_log_of_uses_holds_what_a_list_holds() {
        for ways in [FEWEST, 4, 5, 16, 63, 128, 129, 500] {
            for range in [1, 2, u64::from(ways) + 1, u64::from(ways) * 2, u64::from(ways) * 9] {
                let mut chance = Chance::new(u64::from(ways) + range);
                let tags = (0..20_000).map(|_| 1 + chance.below(range));
                assert_same(ways, tags);
            }
        }
    }

    #[test]
    fn a_tag_that_is_used_between_all_others_stays() {
        let mut chance = Chance::new(1);
        let tags = (0..50_000).flat_map(|number| [1, 2 + chance.below(200), 500 + number % 3]);
        assert_same(128, tags);
    }

    #[test]
    fn tags_of_one_chain_are_found_one_behind_the_other() {
        let mut chance = Chance::new(1);
        let alike: Vec<u64> = (1..).filter(|&tag| golden(tag) >> 54 == 7).take(24).collect();
        for ways in [FEWEST, 8, 16] {
            let tags: Vec<u64> = (0..20_000).map(|_| alike[chance.below(24) as usize]).collect();
            assert_same(ways, tags.into_iter());
        }
    }
}
