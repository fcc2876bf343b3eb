//! The accesses of a block that do not repeat the one before, as items that lack the regions of their names.

use fearless_simd::{Simd, dispatch, mask64x8, prelude::*, u64x8};

use crate::access::{ADDRESS, Access, LANES, SIDE, Side, words};
use crate::keep::Kept;
use crate::tlb::level::{Item, PLACE, SIDE_OF_ITEM};
use crate::tlb::names::{LOW, Names, TooSpread};

const NO_PAGE: u64 = u64::MAX;

/// What is left of a block.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    /// The page and side of the access before, where a repetition is a hit that changes nothing.
    last: u64,
    items: Vec<u64>,
    regions: Vec<u64>,
    count: usize,
    /// A bit for each class and side that occurs.
    pub(crate) seen: u32,
}

impl Default for Fresh {
    fn default() -> Self {
        Self {
            last: NO_PAGE,
            items: Vec::new(),
            regions: Vec::new(),
            count: 0,
            seen: 0,
        }
    }
}

impl Fresh {
    /// The next access repeats nothing.
    pub(crate) fn forget(&mut self) {
        self.last = NO_PAGE;
    }

    /// Finds accesses whose page or side is not that of the access before; of sides that have no bit in `left_out`, all. Pages have `shift` bits.
    pub(crate) fn find(&mut self, accesses: &[Access], shift: u32, left_out: u8) {
        self.make_room(accesses.len());
        dispatch!(fearless_simd::Level::new(), simd => self.compare(simd, accesses, shift, left_out));
    }

    /// The same if `look` says of an access its page without `shift` bits, its class, and of which sides repetitions are left out there.
    pub(crate) fn find_each(&mut self, accesses: &[Access], shifts: &[u32], look: impl Fn(Access) -> (u64, usize, u8)) {
        self.make_room(accesses.len());
        let (mut count, mut seen) = (0, 0);
        for (place, &access) in accesses.iter().enumerate() {
            let (page_and_side, class, left_out) = look(access);
            let (page, side) = (access.address() >> shifts[class], access.side());
            self.items[count] = Item::new(low(page), side, place).word();
            self.regions[count] = Names::region_of(class as u8, page);
            let is_fresh = (page_and_side != self.last) | (left_out >> side as u8 & 1 == 0);
            count += usize::from(is_fresh);
            seen |= u32::from(is_fresh) << (class * 3 + side as usize);
            self.last = page_and_side;
        }
        (self.count, self.seen) = (count, seen);
    }

    pub(crate) fn name(&self, names: &mut Names, items: &mut Kept<Item>) -> Result<(), TooSpread> {
        let words = self.items.iter().zip(&self.regions[..self.count]);
        items.refill(self.count, Item::default(), |items| {
            let mut differ = 0;
            for (item, (&word, &region)) in items.iter_mut().zip(words.clone()) {
                let (recent, base) = names.recent(region);
                *item = Item::from_word(word | u64::from(base));
                differ |= recent ^ region;
            }
            // Decided once, so that the loop before has no branches.
            if differ != 0 {
                for (item, (&word, &region)) in items.iter_mut().zip(words) {
                    *item = Item::from_word(word | u64::from(names.base(region)?));
                }
            }
            Ok(self.count)
        })
    }

    fn make_room(&mut self, accesses: usize) {
        let room = accesses.next_multiple_of(LANES) + LANES;
        if self.items.len() < room {
            self.items.resize(room, 0);
            self.regions.resize(room, 0);
        }
    }

    #[inline(always)]
    fn compare<S: Simd>(&mut self, simd: S, accesses: &[Access], shift: u32, left_out: u8) {
        let low = (1 << LOW) - 1;
        let mut places = u64x8::from_fn(simd, |lane| lane as u64) << PLACE;
        let (mut count, mut seen) = (0, u64x8::splat(simd, 0));
        let mut last = u64x8::splat(simd, self.last) >> shift;
        // Most first levels hold pages for all sides.
        let is_any_kept = Side::ALL.iter().any(|&side| left_out >> side as u8 & 1 == 0);
        for accesses in accesses.chunks(LANES) {
            let words = u64x8::simd_from(simd, words(accesses));
            let (pages, sides) = (words >> shift, words >> SIDE);
            let before = last.slide::<{ LANES - 1 }>(pages);
            last = pages;
            let mut changed = pages.simd_ne(before).to_bitmask();
            if is_any_kept {
                let kept = (u64x8::splat(simd, u64::from(!left_out)) >> sides) & 1;
                changed |= kept.simd_ne(0).to_bitmask();
            }
            changed &= (1 << accesses.len()) - 1;
            let places_here = places;
            places += (LANES as u64) << PLACE;
            // As most often in a stream.
            if changed == 0 {
                continue;
            }
            let fresh = mask64x8::from_bitmask(simd, changed);
            let items = (pages & low) | (sides << SIDE_OF_ITEM) | places_here;
            let regions = (words & ADDRESS) >> (shift + LOW);
            items.compress(fresh).store_slice(&mut self.items[count..count + LANES]);
            regions
                .compress(fresh)
                .store_slice(&mut self.regions[count..count + LANES]);
            seen |= fresh.select(u64x8::splat(simd, 1) << sides, u64x8::splat(simd, 0));
            count += changed.count_ones() as usize;
        }
        self.last = accesses.last().map_or(self.last, |access| access.word());
        self.count = count;
        self.seen = seen.to_array().into_iter().fold(0, |seen, bits| seen | bits as u32);
    }
}

fn low(page: u64) -> u32 {
    page as u32 & ((1 << LOW) - 1)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use fearless_simd::{Level, Simd};

    use super::Fresh;
    use crate::access::{Access, Side};
    use crate::random::Chance;

    /// Items, regions, and what was seen, by the vectors of a level.
    fn found<S: Simd>(simd: S, accesses: &[Access], left_out: u8) -> (Vec<u64>, Vec<u64>, u32) {
        let mut fresh = Fresh::default();
        fresh.make_room(accesses.len());
        simd.vectorize(|| fresh.compare(simd, accesses, 12, left_out));
        let count = fresh.count;
        (
            fresh.items[..count].to_vec(),
            fresh.regions[..count].to_vec(),
            fresh.seen,
        )
    }

    #[test]
    fn vectors_of_every_width_find_what_is_found_one_by_one() {
        let mut chance = Chance::new(1);
        for length in [0, 1, 7, 8, 9, 100, 2048] {
            let access = |_| {
                Access::new(
                    chance.below(1 << 14) | chance.below(3) << 40,
                    Side::ALL[chance.below(3) as usize],
                )
            };
            let accesses: Vec<Access> = (0..length).map(access).collect();
            for left_out in 0..8 {
                let mut slow = Fresh::default();
                slow.find_each(&accesses, &[12], |access| (access.page_and_side(12), 0, left_out));
                let count = slow.count;
                let slow = (slow.items[..count].to_vec(), slow.regions[..count].to_vec(), slow.seen);
                let level = Level::new();
                let narrow = level.as_sse2().map(|simd| found(simd, &accesses, left_out));
                let wider = level.as_avx2().map(|simd| found(simd, &accesses, left_out));
                let widest = level.as_avx512().map(|simd| found(simd, &accesses, left_out));
                for fast in [narrow, wider, widest].into_iter().flatten() {
                    assert_eq!(fast, slow, "{length} accesses");
                }
            }
        }
    }
}
