//! The TLBs in front of the walker.

use crate::access::Access;
use crate::setting::{ByRange, Setting, shift};
use crate::tlb::level::{Array, Level, LevelCounts, Page};

/// TLBs of any number of levels. A miss asks the next level, and the page is then brought into all levels that were asked.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// Address bits within an entry.
    shift: ByRange<u32>,
    levels: Vec<Level>,
    /// Page and side of the access before, where the first level holds such pages: a repetition is a hit that changes nothing. On a huge page
    /// beside base pages it is the base page's size that counts: other accesses to it ask the first level, and hit.
    last: u64,
}

const NO_PAGE: u64 = u64::MAX;

impl Front {
    /// Empty TLBs. Arrays whose level is the same are asked together; levels are numbered from 1.
    pub(crate) fn new(arrays: &[Array], setting: Setting) -> Self {
        let deepest = arrays.iter().map(|array| array.level).max().unwrap_or(0);
        let of_level = |number: u8| arrays.iter().filter(move |array| array.level == number);
        let entries = setting.by_range(Setting::entry);
        let level = |number: u8| Level::new(&of_level(number).collect::<Vec<_>>(), [entries.base, entries.huge]);
        Self {
            shift: setting.by_range(|setting| shift(setting.entry())),
            levels: (1..=deepest).map(level).collect(),
            last: NO_PAGE,
        }
    }

    /// Translates an access; does it miss in every level?
    #[inline]
    pub(crate) fn misses(&mut self, access: Access) -> bool {
        let page_and_side = access.page_and_side(self.shift.base);
        if page_and_side == self.last
            && let Some(first) = self.levels.first_mut()
        {
            first.counts.lookups += 1;
            return false;
        }
        let (page, side) = (self.page(access.address()), access.side());
        let is_held = self.levels.first().is_some_and(|first| first.serves(page, side));
        self.last = if is_held { page_and_side } else { NO_PAGE };
        !self.levels.iter_mut().any(|level| level.holds(page, side))
    }

    /// The page that holds an address, as entries hold it.
    #[inline]
    pub(crate) fn page(&self, address: u64) -> Page {
        let shift = self.shift.at(address);
        Page {
            number: address >> shift,
            is_huge: shift != self.shift.base,
        }
    }

    /// Counts so far, by level.
    pub(crate) fn counts(&self) -> impl Iterator<Item = LevelCounts> {
        self.levels.iter().map(|level| level.counts)
    }

    /// Begins to count anew; what the TLBs hold stays.
    pub(crate) fn reset_counts(&mut self) {
        self.levels
            .iter_mut()
            .for_each(|level| level.counts = LevelCounts::default());
    }

    /// Drops everything, as a switch of address spaces does.
    pub(crate) fn flush(&mut self) {
        self.levels.iter_mut().for_each(Level::flush);
        self.last = NO_PAGE;
    }

    /// Drops the page that holds an address, in every level.
    pub(crate) fn invalidate(&mut self, address: u64) {
        let page = self.page(address);
        self.levels.iter_mut().for_each(|level| level.invalidate(page));
        self.last = NO_PAGE;
    }
}
