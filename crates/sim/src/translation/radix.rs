//! One radix page table with its page-walk caches: which levels a walk reads.

use fearless_simd::{Simd, dispatch};

use super::keep::{Kept, keep};
use super::sets::{Sets, Touch, TouchSet, with_sets};
use crate::ways::Replacement;

/// Address bits of one level's index.
const INDEX: u32 = 9;
/// Address bits within a base page.
const BASE: u32 = 12;
/// Bytes of an entry.
const ENTRY: u64 = 8;
/// From one level's tables to the next: more than a level can fill, and an odd number of lines, so that levels do not all begin
/// in the first set of a cache.
pub(super) const NEXT: u64 = (1 << 45) + 64 * 1021;

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
pub(super) struct Walk {
    pub(super) address: u64,
    pub(super) leaf: u8,
}

impl Walk {
    /// For a page with that many address bits.
    #[inline]
    pub(super) fn new(address: u64, bits: u32) -> Self {
        let leaf = 1 + (bits.saturating_sub(BASE) / INDEX) as u8;
        Self { address, leaf }
    }

    /// How many entries it reads, if it begins with that level.
    #[inline(always)]
    pub(super) fn reads(self, first: u8) -> u64 {
        u64::from((first + 1).saturating_sub(self.leaf))
    }

    /// The levels whose entries it reads then, from the top.
    #[inline(always)]
    pub(super) fn levels(self, first: u8) -> impl Iterator<Item = u8> {
        (self.leaf..=first).rev()
    }

    /// The bytes from the beginning of all tables to the entry of a level.
    #[inline(always)]
    pub(super) fn offset(self, level: u8) -> u64 {
        NEXT * u64::from(level) + (self.address >> (BASE - INDEX + INDEX * u32::from(level))) * ENTRY
    }
}

/// A page table of a shape, with caches of its upper levels. Tables are laid out in address order, as at start-up.
#[derive(Clone, Debug)]
pub(super) struct Radix {
    levels: u8,
    /// By the level of the table that an entry leads to, from 1 on.
    caches: Vec<Option<Sets>>,
    /// Numbers of the walks whose first level is not known yet.
    open: Kept<u32>,
    missed: Kept<u32>,
}

impl Radix {
    /// A table with 4 or 5 levels.
    pub(super) fn new(levels: u8, caches: WalkCaches) -> Self {
        let cache = |&entries: &u32| (entries > 0).then(|| Sets::new(1, entries, Replacement::Lru));
        let caches = caches.0.iter().take(levels.saturating_sub(1).into());
        Self {
            levels,
            caches: caches.map(cache).collect(),
            open: Kept::default(),
            missed: Kept::default(),
        }
    }

    /// Its levels.
    pub(super) fn levels(&self) -> u8 {
        self.levels
    }

    /// Does any cache keep upper levels?
    pub(super) fn has_caches(&self) -> bool {
        self.caches.iter().any(Option::is_some)
    }

    /// Finds for each walk the level that it begins with: the top, or the lowest one whose table the caches know. Walks are made in
    /// their order, and all that they read is then known; caches do not influence each other, and are asked one after the other.
    /// Returns how many entries all of them read.
    pub(super) fn first_levels(&mut self, walks: &[Walk], first: &mut Vec<u8>) -> u64 {
        first.clear();
        first.resize(walks.len(), self.levels);
        self.open.fill_with(0..walks.len() as u32);
        for (level, cache) in (1..).zip(&mut self.caches) {
            if let Some(cache) = cache {
                dispatch!(fearless_simd::Level::new(), simd => {
                    with_sets!(cache, sets => sets.with_set(0, #[inline(always)] |set| {
                        ask(simd, set, level, walks, &self.open, &mut self.missed, first);
                    }));
                });
                std::mem::swap(&mut self.open, &mut self.missed);
            }
        }
        walks.iter().zip(&*first).map(|(walk, &first)| walk.reads(first)).sum()
    }

    /// Drops what the caches hold.
    pub(super) fn flush(&mut self) {
        self.caches
            .iter_mut()
            .flatten()
            .for_each(|cache| cache.drop_if(|_| true));
    }
}

/// Asks the cache of entries that lead to tables of a level; `missed` are then the walks that it does not help.
#[inline(always)]
fn ask<S: Simd>(
    simd: S,
    set: &mut impl TouchSet,
    level: u8,
    walks: &[Walk],
    open: &[u32],
    missed: &mut Kept<u32>,
    first: &mut [u8],
) {
    let shift = BASE + INDEX * u32::from(level);
    let mut latest = None;
    keep(open, missed, |number| {
        let walk = walks[number as usize];
        if walk.leaf > level {
            return true;
        }
        // The entry covers everything below it; the one that was used last stays so.
        let key = (walk.address >> shift) as u32;
        let known = latest == Some(key) || set.touch(simd, key.wrapping_add(1));
        latest = Some(key);
        let at = &mut first[number as usize];
        *at = if known { level } else { *at };
        !known
    });
}
