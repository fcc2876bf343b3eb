//! One radix page table with its page-walk caches: which levels a walk reads.

use super::sets::Sets;
use crate::ways::Replacement;

/// Address bits of one level's index.
const INDEX: u32 = 9;
/// Address bits within a base page.
const BASE: u32 = 12;

/// Entries of the page-walk caches, each fully associative under LRU. `[0]` holds entries that lead to page tables (PDE), `[1]` those that
/// lead to page directories (PDPTE), `[2]` PML4E, `[3]` PML5E.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct WalkCaches(pub [u32; 4]);

impl WalkCaches {
    /// None at all.
    pub const NONE: Self = Self([0; 4]);
}

/// A page table of a shape, with caches of its upper levels. Tables are laid out in address order, as at start-up.
#[derive(Clone, Debug)]
pub(super) struct Radix {
    levels: u8,
    /// By the level of the table that an entry leads to, from 1 on.
    caches: Vec<Option<Sets>>,
}

impl Radix {
    /// A table with 4 or 5 levels.
    pub(super) fn new(levels: u8, caches: WalkCaches) -> Self {
        let cache = |&entries: &u32| (entries > 0).then(|| Sets::new(1, entries, Replacement::Lru));
        Self {
            levels,
            caches: caches
                .0
                .iter()
                .take(levels.saturating_sub(1).into())
                .map(cache)
                .collect(),
        }
    }

    /// The level of the entry that maps a page with that many address bits: 1 for base pages. A page larger than the whole table
    /// has no entry.
    pub(super) fn leaf(&self, shift: u32) -> u8 {
        1 + (shift.saturating_sub(BASE) / INDEX) as u8
    }

    /// The levels whose entries a walk for an address reads, from the top or from what the walk caches know, down to the leaf:
    /// the first of them. All that it reads is then known to the caches.
    #[inline]
    pub(super) fn first_level(&mut self, address: u64, leaf: u8) -> u8 {
        for level in leaf..self.levels {
            // The entry that leads to the table of this level covers everything below it.
            let key = (address >> (BASE + INDEX * u32::from(level))) as u32;
            let known = match &mut self.caches[usize::from(level - 1)] {
                Some(cache) => cache.touch(0, key.wrapping_add(1)),
                None => false,
            };
            if known {
                return level;
            }
        }
        self.levels
    }

    /// Bytes from the first entry of a level to the one for an address.
    #[inline]
    pub(super) fn offset(address: u64, level: u8) -> u64 {
        (address >> (BASE + INDEX * u32::from(level - 1))) * 8
    }

    /// Drops what the caches hold.
    pub(super) fn flush(&mut self) {
        self.caches
            .iter_mut()
            .flatten()
            .for_each(|cache| cache.drop_if(|_| true));
    }
}
