//! The TLBs in front of the walker: blocks of accesses in, those that need a walk out.

use model::Bytes;

use crate::access::{Access, fetch};
use crate::keep::Kept;
use crate::tlb::fresh::Fresh;
use crate::tlb::layout::Layout;
use crate::tlb::level::{Array, Item, Level, shifts};
use crate::tlb::names::{Names, TooSpread};

/// Accesses that are simulated level by level before the next ones: all data of a block stays in the first-level cache.
pub const BLOCK: usize = 2048;

/// What became of the accesses at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Accesses that asked it.
    pub lookups: u64,
    /// Those that did not find their page.
    pub misses: u64,
}

/// TLBs of any number of levels. A miss asks the next level, and the page is then brought into all levels that were asked.
#[derive(Clone, Debug)]
pub struct Front {
    layout: Layout,
    shifts: Vec<u32>,
    names: Names,
    levels: Vec<Level>,
    /// By class: a bit for each side whose repetitions are left out.
    left_out: Vec<u8>,
    fresh: Fresh,
    items: Kept<Item>,
    missed: Kept<Item>,
    counts: Vec<LevelCounts>,
}

impl Front {
    /// Empty TLBs. Arrays whose level is the same are asked together; levels are numbered from 1.
    pub fn new(arrays: &[Array], layout: Layout) -> Self {
        let deepest = arrays.iter().map(|array| array.level).max().unwrap_or(0);
        let level = |number: u8| {
            let arrays: Vec<&Array> = arrays.iter().filter(|array| array.level == number).collect();
            Level::new(&arrays, layout.backings())
        };
        let levels: Vec<Level> = (1..=deepest).map(level).collect();
        let left_out = |class| levels.first().map_or(0, |level| level.served(class));
        let left_out = (0..layout.backings().len()).map(left_out);
        Self {
            shifts: shifts(layout.backings()),
            left_out: left_out.collect(),
            counts: vec![LevelCounts::default(); levels.len()],
            levels,
            layout,
            names: Names::default(),
            fresh: Fresh::default(),
            items: Kept::default(),
            missed: Kept::default(),
        }
    }

    pub fn counts(&self) -> &[LevelCounts] {
        &self.counts
    }

    /// Begins to count anew; what the TLBs hold stays.
    pub fn reset_counts(&mut self) {
        self.counts.fill(LevelCounts::default());
    }

    /// Translates at most [`BLOCK`] accesses in their order.
    ///
    /// # Errors
    /// If they touch more separate regions than can be named.
    pub fn block(&mut self, accesses: &[Access]) -> Result<(), TooSpread> {
        fetch(accesses);
        self.leave_out_repetitions(accesses);
        self.fresh.name(&mut self.names, &mut self.items)?;
        for (number, level) in self.levels.iter_mut().enumerate() {
            let asked = if number == 0 { accesses.len() } else { self.items.len() };
            level.pass(&self.names, &self.items, self.fresh.seen, &mut self.missed);
            std::mem::swap(&mut self.items, &mut self.missed);
            self.counts[number].lookups += asked as u64;
            self.counts[number].misses += self.items.len() as u64;
        }
        Ok(())
    }

    /// The accesses of the last block that missed in every level: place in the block, class of backing, and name of the page.
    pub(crate) fn walks(&self) -> impl Iterator<Item = (usize, u8, u32)> {
        let is_uniform = self.layout.is_uniform();
        let class = move |name: u32| if is_uniform { 0 } else { self.names.page(name).0 };
        let miss = move |item: &Item| (item.place(), class(item.name()), item.name());
        self.items.iter().map(miss)
    }

    /// Finds the accesses whose page or side is not that of the access before: a repetition is a hit where the first level holds
    /// such pages.
    fn leave_out_repetitions(&mut self, accesses: &[Access]) {
        let (layout, shifts, left_out) = (&self.layout, &self.shifts, &self.left_out);
        if layout.is_uniform() {
            self.fresh.find(accesses, shifts[0], left_out[0]);
        } else {
            self.fresh.find_each(accesses, shifts, |access| {
                let class = usize::from(layout.class(access.address()));
                // Pages of two classes never have the same numbers and addresses, so a class in free bits keeps them apart.
                let page = access.page_and_side(shifts[class]) ^ (class as u64) << 52;
                (page, class, left_out[class])
            });
        }
    }

    /// Drops everything, as a switch of address spaces without tags does.
    pub fn flush(&mut self) {
        self.levels.iter_mut().for_each(|level| level.drop_if(|_| true));
        self.fresh.forget();
    }

    /// Drops the page that holds an address, in every level.
    ///
    /// # Errors
    /// As [`Self::block`].
    pub fn invalidate(&mut self, address: u64) -> Result<(), TooSpread> {
        let gone = self.name_at(address)?;
        self.levels
            .iter_mut()
            .for_each(|level| level.drop_if(|name| name == gone));
        self.fresh.forget();
        Ok(())
    }

    /// The name of the page that holds an address.
    pub(crate) fn name_at(&mut self, address: u64) -> Result<u32, TooSpread> {
        let class = self.layout.class(address);
        self.names.of(class, address >> self.shifts[usize::from(class)])
    }

    /// The size of the pages of a class, as entries hold them.
    pub fn entry(&self, class: u8) -> Bytes {
        self.layout.backings()[usize::from(class)].entry()
    }
}
