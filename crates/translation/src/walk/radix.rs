//! One radix page table with its page-walk caches: which levels a walk reads.

use fearless_simd::{Simd, dispatch};

use crate::tlb::sets::{Sets, with_sets};
use crate::tlb::touch::{Touch, TouchSet};
use crate::tlb::ways::Replacement;

/// Address bits of one level's index.
const INDEX: u32 = 9;
/// Address bits within a base page.
const BASE: u32 = 12;
/// Bytes of an entry.
const ENTRY: u64 = 8;
/// From one level's tables to the next: more than a level can fill, and an odd number of lines, so that levels do not all begin
/// in the first set of a cache.
pub(crate) const NEXT: u64 = (1 << 45) + 64 * 1021;

/// Entries of the page-walk caches, each fully associative under LRU. `[0]` holds entries that lead to page tables (PDE), `[1]` those that
/// lead to page directories (PDPTE), `[2]` PML4E, `[3]` PML5E.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct WalkCaches(pub [u32; 4]);

impl WalkCaches {
    /// None at all.
    pub const NONE: Self = Self([0; 4]);
}

/// A walk: for which address, and the level of the entry that maps its page: 1 for base pages. A page larger than the whole table has
/// no entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) address: u64,
    pub(crate) leaf: u8,
}

impl Walk {
    /// For a page with that many address bits.
    #[inline]
    pub(crate) fn new(address: u64, bits: u32) -> Self {
        let leaf = leaf(bits);
        Self { address, leaf }
    }

    /// What a cache of entries that lead to tables of a level knows it by: the entry covers everything below it.
    #[inline(always)]
    fn key(self, level: u8) -> u32 {
        (self.address >> (BASE + INDEX * u32::from(level))) as u32
    }

    /// How many entries it reads, if it begins with that level.
    #[inline(always)]
    pub(crate) fn reads(self, first: u8) -> u64 {
        u64::from((first + 1).saturating_sub(self.leaf))
    }

    /// The levels whose entries it reads then, from the top.
    #[inline(always)]
    pub(crate) fn levels(self, first: u8) -> impl Iterator<Item = u8> {
        (self.leaf..=first).rev()
    }

    /// The bytes from the beginning of all tables to the entry of a level.
    #[inline(always)]
    pub(crate) fn offset(self, level: u8) -> u64 {
        NEXT * u64::from(level) + (self.address >> (BASE - INDEX + INDEX * u32::from(level))) * ENTRY
    }
}

/// The level of the entries that map pages with that many address bits.
pub(crate) fn leaf(bits: u32) -> u8 {
    1 + (bits.saturating_sub(BASE) / INDEX) as u8
}

/// A page table of a shape, with caches of its upper levels. Tables are laid out in address order, as at start-up.
#[derive(Clone, Debug)]
pub(crate) struct Radix {
    levels: u8,
    /// The cache of entries that lead to the lowest tables, if there is one. Most lookups of base pages miss it.
    lowest: Sets,
    has_lowest: bool,
    upper: Upper,
}

/// The caches above that there are, the lowest first.
#[derive(Clone, Debug)]
struct Upper(Vec<UpperCache>);

#[derive(Clone, Debug)]
struct UpperCache {
    /// The level of the tables that its entries lead to.
    level: u8,
    tags: Sets,
}

impl Radix {
    /// A table with 4 or 5 levels.
    pub(crate) fn new(levels: u8, WalkCaches(entries): WalkCaches) -> Self {
        let tags = |entries: u32| Sets::new(1, entries, Replacement::Lru);
        let upper = (2..levels).zip(&entries[1..]).filter(|(_, entries)| **entries > 0);
        let upper = upper.map(|(level, &entries)| UpperCache {
            level,
            tags: tags(entries),
        });
        Self {
            levels,
            lowest: tags(entries[0]),
            has_lowest: entries[0] > 0,
            upper: Upper(upper.collect()),
        }
    }

    /// Its levels.
    pub(crate) fn levels(&self) -> u8 {
        self.levels
    }

    /// Does any cache keep upper levels?
    pub(crate) fn has_caches(&self) -> bool {
        self.has_lowest || !self.upper.0.is_empty()
    }

    /// Finds for each walk the level that it begins with: the top, or the lowest one whose table the caches know. Walks are made in
    /// their order, and all that they read is then known. Returns how many entries all of them read.
    pub(crate) fn first_levels(&mut self, walks: &[Walk], first: &mut Vec<u8>) -> u64 {
        first.clear();
        first.resize(walks.len(), self.levels);
        self.lend(FirstLevels { walks, first })
    }

    /// Lends the caches for many walks.
    #[inline(always)]
    pub(crate) fn lend<B: Borrows>(&mut self, borrower: B) -> B::Result {
        let Self {
            levels,
            lowest,
            has_lowest,
            upper,
        } = self;
        dispatch!(fearless_simd::Level::new(), simd => with_sets!(lowest, sets => sets.with_set(0, #[inline(always)] |lowest| {
            let caches = Lent {
                levels: *levels,
                lowest,
                lowest_latest: if *has_lowest { NO_KEY } else { NO_CACHE },
                upper_latest: NO_KEY,
                upper_level: upper.0.first().map_or(0, |cache| cache.level),
                upper,
            };
            borrower.run(simd, caches)
        })))
    }

    /// Drops what the caches hold.
    pub(crate) fn flush(&mut self) {
        self.lowest.drop_if(|_| true);
        for cache in &mut self.upper.0 {
            cache.tags.drop_if(|_| true);
        }
    }
}

/// No walk has this key.
const NO_KEY: u64 = u64::MAX;
/// There is no lowest cache.
const NO_CACHE: u64 = u64::MAX - 1;

/// Who makes walks with the caches of a table, whichever form these have.
pub(crate) trait Borrows {
    /// What it has in the end.
    type Result;

    /// Makes the walks.
    fn run<S: Simd, T: TouchSet>(self, simd: S, caches: Lent<T>) -> Self::Result;
}

/// The caches of a table while they are lent. What was used last in one stays so if it is used again, and is compared first.
pub(crate) struct Lent<'a, T> {
    levels: u8,
    lowest: &'a mut T,
    lowest_latest: u64,
    /// Of the lowest of the caches above.
    upper_latest: u64,
    upper_level: u8,
    upper: &'a mut Upper,
}

impl<T: TouchSet> Lent<'_, T> {
    /// The level with which the next walk begins.
    #[inline(always)]
    pub(crate) fn first_level<S: Simd>(&mut self, simd: S, walk: Walk) -> u8 {
        if self.lowest_latest != NO_CACHE && walk.leaf == 1 {
            let key = u64::from(walk.key(1));
            if self.lowest_latest == key || self.lowest.touch(simd, (key as u32).wrapping_add(1)) {
                self.lowest_latest = key;
                return 1;
            }
            self.lowest_latest = key;
        }
        self.upper_level(simd, walk)
    }

    #[inline(always)]
    fn upper_level<S: Simd>(&mut self, simd: S, walk: Walk) -> u8 {
        if walk.leaf <= self.upper_level {
            let key = u64::from(walk.key(self.upper_level));
            if self.upper_latest == key {
                return self.upper_level;
            }
            self.upper_latest = key;
        }
        self.upper.first_level(simd, walk).unwrap_or(self.levels)
    }
}

/// Walks, and where the levels go that they begin with.
struct FirstLevels<'a> {
    walks: &'a [Walk],
    first: &'a mut [u8],
}

impl Borrows for FirstLevels<'_> {
    type Result = u64;

    #[inline(always)]
    fn run<S: Simd, T: TouchSet>(self, simd: S, mut caches: Lent<T>) -> u64 {
        let mut references = 0;
        for (&walk, first) in self.walks.iter().zip(self.first) {
            *first = caches.first_level(simd, walk);
            references += walk.reads(*first);
        }
        references
    }
}

impl Upper {
    /// The lowest level whose table is known; caches do not influence each other, and are asked one after the other.
    #[inline(always)]
    fn first_level<S: Simd>(&mut self, simd: S, walk: Walk) -> Option<u8> {
        for cache in &mut self.0 {
            let key = walk.key(cache.level);
            if walk.leaf <= cache.level && cache.tags.touch(simd, 0, key.wrapping_add(1)) {
                return Some(cache.level);
            }
        }
        None
    }
}
