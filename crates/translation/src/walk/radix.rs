//! One radix page table with its page-walk caches: which levels a walk reads.

use crate::tlb::sets::Sets;

/// Address bits of one level's index.
const INDEX: u32 = 9;
/// Address bits within a base page.
const BASE: u32 = 12;
/// Bytes of an entry.
const ENTRY: u64 = 8;
/// Guest page tables lie here in guest-physical memory, one level after the other, beyond all data.
pub(crate) const TABLES: u64 = 1 << 52;
/// Host page tables lie beyond the guest's memory.
pub(crate) const HOST: u64 = 1 << 56;
/// From one level's tables to the next: more than a level can fill, and an odd number of lines, so that levels do not all begin
/// in the first set of a cache.
pub(crate) const NEXT: u64 = (1 << 45) + 64 * 1021;

/// Entries of the page-walk caches, each fully associative under LRU. `[0]` holds entries that lead to page tables (PDE), `[1]` those that
/// lead to page directories (PDPTE), `[2]` PML4E, `[3]` PML5E.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct WalkCaches(pub [u32; 4]);

/// A walk: for which address, and the level of the entry that maps its page: 1 for base pages. A page larger than the whole table has
/// no entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) address: u64,
    pub(crate) leaf: u8,
}

impl Walk {
    /// What a cache of entries that lead to tables of a level knows it by: the entry covers everything below it.
    #[inline]
    fn key(self, level: u8) -> u64 {
        self.address >> (BASE + INDEX * u32::from(level))
    }

    /// The levels whose entries it reads then, from the top.
    #[inline]
    pub(crate) fn levels(self, first: u8) -> impl Iterator<Item = u8> {
        (self.leaf..=first).rev()
    }

    /// The bytes from the beginning of all tables to the entry of a level.
    #[inline]
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
    /// The caches that there are, each with the level of the tables that its entries lead to; the lowest first.
    caches: Vec<(u8, Sets<u64>)>,
}

impl Radix {
    /// A table with 4 or 5 levels.
    pub(crate) fn new(levels: u8, WalkCaches(entries): WalkCaches) -> Self {
        let caches = (1..levels).zip(entries).filter(|&(_, entries)| entries > 0);
        let cache = |(level, entries)| (level, Sets::new(1, entries));
        Self {
            levels,
            caches: caches.map(cache).collect(),
        }
    }

    /// The level with which a walk begins: the top, or the lowest one whose table the caches know. All that the walk reads is then known. Caches
    /// do not influence each other, and are asked one after the other.
    pub(crate) fn first_level(&mut self, walk: Walk) -> u8 {
        // The tag 0 stands for an empty way.
        let mut usable = self.caches.iter_mut().filter(|(level, _)| walk.leaf <= *level);
        let known = usable.find_map(|(level, cache)| cache.touch(0, walk.key(*level) + 1).then_some(*level));
        known.unwrap_or(self.levels)
    }

    /// Drops what the caches hold.
    pub(crate) fn flush(&mut self) {
        self.caches.iter_mut().for_each(|(_, cache)| cache.flush());
    }
}
