//! One level of TLBs: its arrays, and which of them holds which pages for which side.

use fearless_simd::{Simd, dispatch};
use model::Bytes;
use model::tlb::Hash;

use crate::access::Side;
use crate::keep::{Kept, keep};
use crate::tlb::layout::{Backing, shift};
use crate::tlb::names::Names;
use crate::tlb::sets::{Sets, with_sets};
use crate::tlb::touch::{Touch, TouchSets};
use crate::tlb::ways::Replacement;

/// Pages of one size in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub page: Bytes,
    /// The first set that such pages use.
    pub first: u32,
    /// The number of sets that they use.
    pub sets: u32,
    /// How a page chooses among them; of sets that are no power of two by the remainder.
    pub hash: Hash,
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
    /// Which entry of a full set goes.
    pub replacement: Replacement,
}

impl Array {
    /// An LRU array for all sides that holds pages of one size, chosen by their low bits.
    pub fn new(level: u8, page: Bytes, sets: u32, ways: u32) -> Self {
        Self::shared(level, &[page], sets, ways)
    }

    /// The same for several page sizes, which share all sets.
    pub fn shared(level: u8, pages: &[Bytes], sets: u32, ways: u32) -> Self {
        let held = |&page| Held {
            page,
            first: 0,
            sets,
            hash: Hash::Linear,
        };
        Self {
            level,
            sides: Side::ALL.to_vec(),
            holds: pages.iter().map(held).collect(),
            sets,
            ways,
            replacement: Replacement::Lru,
        }
    }

    /// How many pages of a size it can hold at most.
    pub fn entries(&self, page: Bytes) -> u64 {
        let held = self.holds.iter().find(|held| held.page == page);
        held.map_or(0, |held| u64::from(held.sets) * u64::from(self.ways))
    }
}

/// What passes from level to level: a page's name, the side, and the place of the access in its block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Item(u64);

/// The first bit of an item's side.
pub(crate) const SIDE_OF_ITEM: u32 = 32;
/// The first bit of its place.
pub(crate) const PLACE: u32 = 34;

impl Item {
    #[inline]
    pub(crate) fn new(name: u32, side: Side, place: usize) -> Self {
        Self(u64::from(name) | (side as u64) << SIDE_OF_ITEM | (place as u64) << PLACE)
    }

    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn name(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn side(self) -> usize {
        (self.0 >> SIDE_OF_ITEM & 3) as usize
    }

    /// The place of the access in its block.
    #[inline]
    pub(crate) fn place(self) -> usize {
        (self.0 >> PLACE) as usize
    }
}

type Route = Option<(usize, Held)>;

#[derive(Clone, Debug)]
pub(crate) struct Level {
    stores: Vec<Sets>,
    /// By class and side.
    routes: Vec<[Route; 3]>,
}

impl Level {
    pub(crate) fn new(arrays: &[&Array], backings: &[Backing]) -> Self {
        let store = |array: &&Array| Sets::new(array.sets, array.ways, array.replacement);
        let route = |side: Side, page: Bytes| -> Route {
            arrays.iter().enumerate().find_map(|(number, array)| {
                let held = array.holds.iter().find(|held| held.page == page)?;
                array.sides.contains(&side).then_some((number, *held))
            })
        };
        let routes = backings
            .iter()
            .map(|backing| Side::ALL.map(|side| route(side, backing.entry())));
        Self {
            stores: arrays.iter().map(store).collect(),
            routes: routes.collect(),
        }
    }

    /// A bit for each side for which it holds pages of that class.
    pub(crate) fn served(&self, class: usize) -> u8 {
        let sides = self.routes[class].iter().enumerate();
        sides.map(|(side, route)| u8::from(route.is_some()) << side).sum()
    }

    /// Looks items up in their order; those that are not held are brought in, and become `missed`. `seen` has a bit for each
    /// class and side that occurs.
    pub(crate) fn pass(&mut self, names: &Names, items: &[Item], seen: u32, missed: &mut Kept<Item>) {
        let route = self.only_route(seen);
        dispatch!(fearless_simd::Level::new(), simd => match route {
            Some(Some((store, held))) => {
                with_sets!(&mut self.stores[store], sets => all(simd, sets, held, names, items, missed));
            }
            Some(None) => missed.copy(items),
            None => self.each(simd, names, items, missed),
        });
    }

    /// The route of all that occurs, if it is the same.
    fn only_route(&self, seen: u32) -> Option<Route> {
        let routes = self.routes.iter().flatten().enumerate();
        let mut seen = routes.filter(|(bit, _)| seen >> bit & 1 == 1).map(|(_, route)| *route);
        let first = seen.next()?;
        seen.all(|route| route == first).then_some(first)
    }

    #[inline(always)]
    fn each<S: Simd>(&mut self, simd: S, names: &Names, items: &[Item], missed: &mut Kept<Item>) {
        keep(items, missed, |item| {
            let (class, page) = names.page(item.name());
            match self.routes[usize::from(class)][item.side()] {
                Some((store, held)) => !self.stores[store].touch(simd, set_of(held, page), item.name()),
                None => true,
            }
        });
    }

    /// Drops the pages that are to go.
    pub(crate) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        self.stores.iter_mut().for_each(|store| store.drop_if(&goes));
    }
}

#[inline]
fn set_of(held: Held, page: u64) -> usize {
    let set = if held.sets.is_power_of_two() {
        held.hash.set(page, held.sets)
    } else {
        (page % u64::from(held.sets)) as u32
    };
    (held.first + set) as usize
}

#[inline(always)]
fn all<S: Simd>(simd: S, sets: &mut impl Touch, held: Held, names: &Names, items: &[Item], missed: &mut Kept<Item>) {
    let (first, count) = (held.first as usize, held.sets as usize);
    let mut sets = sets.lend().range(first..first + count);
    // Names keep the low 16 bits of page numbers, which is all that linear sets need.
    if held.hash == Hash::Linear && held.sets.is_power_of_two() {
        let mask = count - 1;
        keep(items, missed, |item| {
            !sets.touch(simd, item.name() as usize & mask, item.name())
        });
    } else {
        keep(items, missed, |item| {
            let set = set_of(held, names.page(item.name()).1) - first;
            !sets.touch(simd, set, item.name())
        });
    }
}

/// Address bits within an entry of each class.
pub(crate) fn shifts(backings: &[Backing]) -> Vec<u32> {
    backings.iter().map(|backing| shift(backing.entry())).collect()
}
