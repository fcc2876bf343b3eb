//! One level of TLBs: its arrays, and which of them holds which pages for which side.

use model::Bytes;

use crate::access::Side;
use crate::tlb::sets::Sets;

/// Pages of one size in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub page: Bytes,
    /// The first set that such pages use.
    pub first: u32,
    /// The number of sets that they use. A page chooses among them by its low bits, or by the remainder where they are no power of two.
    pub sets: u32,
}

impl Held {
    /// The set of a page's number.
    #[inline]
    fn set(&self, page: u64) -> usize {
        let sets = u64::from(self.sets);
        let set = if sets.is_power_of_two() {
            page & (sets - 1)
        } else {
            page % sets
        };
        self.first as usize + set as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// 1 for the level that is asked first.
    pub level: u8,
    /// Whose translations it holds.
    pub sides: Vec<Side>,
    pub holds: Vec<Held>,
    /// Sets in all, at most 65,536.
    pub sets: u32,
    /// Entries of a set.
    pub ways: u32,
}

impl Array {
    /// An array for all sides that holds pages of these sizes, which share all sets.
    pub fn new(level: u8, pages: &[Bytes], sets: u32, ways: u32) -> Self {
        let held = |&page| Held { page, first: 0, sets };
        Self {
            level,
            sides: Side::ALL.to_vec(),
            holds: pages.iter().map(held).collect(),
            sets,
            ways,
        }
    }

    /// How many pages of a size it can hold at most.
    pub fn entries(&self, page: Bytes) -> u64 {
        let held = self.holds.iter().find(|held| held.page == page);
        held.map_or(0, |held| u64::from(held.sets) * u64::from(self.ways))
    }
}

/// What became of the accesses at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Accesses that asked it.
    pub lookups: u64,
    /// Those that did not find their page.
    pub misses: u64,
}

/// A page as an entry holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) number: u64,
    /// Is it a huge one beside base pages?
    pub(crate) is_huge: bool,
}

impl Page {
    /// Differs for pages of both sizes and all numbers; 0 stands for an empty way.
    #[inline]
    pub(crate) fn tag(self) -> u64 {
        (self.number + 1) | u64::from(self.is_huge) << 63
    }
}

/// All arrays of a level, for pages of one size, or of two beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    arrays: Vec<Sets<u64>>,
    /// By size and side: which array holds them, and where.
    routes: [[Option<(usize, Held)>; 3]; 2],
    pub(crate) counts: LevelCounts,
}

impl Level {
    pub(crate) fn new(arrays: &[&Array], pages: [Bytes; 2]) -> Self {
        let sets = |array: &&Array| Sets::new(array.sets, array.ways);
        let route = |page: Bytes, side: Side| {
            arrays.iter().enumerate().find_map(|(number, array)| {
                let held = array.holds.iter().find(|held| held.page == page)?;
                array.sides.contains(&side).then_some((number, *held))
            })
        };
        Self {
            arrays: arrays.iter().map(sets).collect(),
            routes: pages.map(|page| Side::ALL.map(|side| route(page, side))),
            counts: LevelCounts::default(),
        }
    }

    /// Can it hold a page for a side?
    #[inline]
    pub(crate) fn serves(&self, page: Page, side: Side) -> bool {
        self.routes[usize::from(page.is_huge)][side as usize].is_some()
    }

    /// Looks a page up, and brings it in if it is not held and can be; was it?
    #[inline]
    pub(crate) fn holds(&mut self, page: Page, side: Side) -> bool {
        let is_held = self.routes[usize::from(page.is_huge)][side as usize]
            .is_some_and(|(array, held)| self.arrays[array].touch(held.set(page.number), page.tag()));
        self.counts.lookups += 1;
        self.counts.misses += u64::from(!is_held);
        is_held
    }

    pub(crate) fn flush(&mut self) {
        self.arrays.iter_mut().for_each(Sets::flush);
    }

    pub(crate) fn invalidate(&mut self, page: Page) {
        for &(array, held) in self.routes[usize::from(page.is_huge)].iter().flatten() {
            self.arrays[array].drop(held.set(page.number), page.tag());
        }
    }
}
