//! Data caches as far as translation needs them: where page-table lines, and if asked for data lines, are found.

use crate::access::ADDRESS_BITS;
use crate::random::{golden, mixed};
use crate::tlb::sets::Sets;

/// One cache, of 64-byte lines, under LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Sets: a power of two is indexed by the line's low bits, others by a hash, as sliced caches are.
    pub sets: u32,
    pub ways: u32,
}

impl Cache {
    pub const fn new(sets: u32, ways: u32) -> Self {
        Self { sets, ways }
    }

    pub fn lines(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.ways)
    }
}

/// Cache levels that a result distinguishes: first to third, and memory behind them.
pub const PLACES: usize = 4;

/// Address bits within a line.
const LINE: u32 = 6;
/// Address bits within a base page.
const PAGE: u32 = 12;

/// The place of the cache that many cores share.
pub const SHARED: usize = 2;

/// How the third cache is filled, which many cores share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// By address, as if memory lay in address order.
    #[default]
    InOrder,
    /// As if base pages lay anywhere: by a hash of the page and the line's low bits within it.
    Hashed,
}

/// A hierarchy: a line that is missed is brought into every level. Its lines are distinguished by 32 bits of hash: of 4 billion
/// lookups of absent lines about `ways` hit by mistake.
#[derive(Clone, Debug)]
pub(crate) struct Caches {
    levels: Vec<(Cache, Sets<u32>)>,
    shared: Shared,
    streams: Option<Streams>,
}

impl Caches {
    /// Empty caches, at most three of them; the first one is asked first. Lines may be fetched into the second one ahead of a stream.
    pub(crate) fn new(caches: &[Cache], shared: Shared, fetches_ahead: bool) -> Self {
        let level = |cache: &Cache| (*cache, Sets::new(cache.sets, cache.ways));
        Self {
            levels: caches.iter().take(PLACES - 1).map(level).collect(),
            shared,
            streams: fetches_ahead.then(Streams::default),
        }
    }

    /// Loads the sets of the third cache that some bytes will be looked for in: all at once, where one after the other would
    /// each wait for this machine's memory. Nothing changes.
    pub(crate) fn load_sets(&self, bytes: impl Iterator<Item = u64>) {
        let Some((cache, sets)) = self.levels.get(SHARED) else {
            return;
        };
        let sum = bytes.fold(0_u32, |sum, byte| {
            let (set, _) = cache.place_at(SHARED, self.shared, byte);
            sets.ends(set).into_iter().flatten().fold(sum, |sum, tag| sum ^ tag)
        });
        std::hint::black_box(sum);
    }

    /// The place where an entry of a page table is found.
    pub(crate) fn entry(&mut self, byte: u64) -> usize {
        find(&mut self.levels, self.shared, byte, |_| {})
    }

    /// The place where data is found, and whether it was fetched there from memory, ahead of a stream.
    pub(crate) fn data(&mut self, byte: u64) -> (usize, bool) {
        let mut is_ahead = false;
        let place = find(&mut self.levels, self.shared, byte, |line| {
            is_ahead = self.streams.as_mut().is_some_and(|streams| streams.follow(line));
        });
        match is_ahead {
            true => (FETCHED, place == PLACES - 1),
            false => (place, false),
        }
    }
}

/// Asks level by level; `missed` hears of the line that the first one does not have.
#[inline]
fn find(levels: &mut [(Cache, Sets<u32>)], shared: Shared, byte: u64, missed: impl FnOnce(u64)) -> usize {
    let Some(((first, sets), behind)) = levels.split_first_mut() else {
        return PLACES - 1;
    };
    let line = byte >> LINE;
    let (set, tag) = first.place(line, 0);
    if sets.touch(set, tag) {
        return 0;
    }
    missed(line);
    for (place, (cache, sets)) in (1..).zip(behind) {
        let (set, tag) = cache.place_at(place, shared, byte);
        if sets.touch(set, tag) {
            return place;
        }
    }
    PLACES - 1
}

impl Cache {
    /// The set and the tag of a byte's line in the cache of a place.
    #[inline]
    fn place_at(&self, place: usize, shared: Shared, byte: u64) -> (usize, u32) {
        if place == SHARED && shared == Shared::Hashed {
            self.place(scattered(byte) >> LINE, self.sets.trailing_zeros())
        } else {
            self.place(byte >> LINE, 0)
        }
    }

    /// The set of a line, and its tag there. Of sets that are no power of two, `low` bits of the line choose within a slice, and a hash
    /// chooses the slice.
    #[inline]
    fn place(&self, line: u64, low: u32) -> (usize, u32) {
        let (set, tag) = if self.sets.is_power_of_two() {
            // Different for lines less than 100 GiB apart, but for the tags 0 and 1.
            (line & u64::from(self.sets - 1), (golden(line) >> 32) as u32)
        } else {
            let (slices, mask) = (u64::from(self.sets >> low), (1_u64 << low) - 1);
            let hash = mixed(line);
            let slice = ((hash >> 32) * slices) >> 32;
            (slice << low | line & mask, hash as u32)
        };
        (set as usize, tag.max(1))
    }
}

/// The same byte, if each base page lies anywhere in 4 PiB of memory.
fn scattered(byte: u64) -> u64 {
    let page = mixed(byte >> PAGE) & ((1 << (ADDRESS_BITS - PAGE)) - 1);
    page << PAGE | byte & ((1 << PAGE) - 1)
}

/// The place of the cache that lines are fetched into ahead of a stream.
const FETCHED: usize = 1;

/// Pages whose last line is known: more streams at a time are not followed.
const FOLLOWED: usize = 64;

/// The last line that the first cache missed in each of some pages. Of a page in which lines follow each other the next ones are fetched ahead, as the prefetchers of
/// second-level caches do. They end with the page.
#[derive(Clone, Debug)]
struct Streams([u64; FOLLOWED]);

impl Default for Streams {
    fn default() -> Self {
        Self([u64::MAX; FOLLOWED])
    }
}

impl Streams {
    /// Follows a line of data; was it fetched ahead?
    fn follow(&mut self, line: u64) -> bool {
        let page = line >> (PAGE - LINE);
        let last = &mut self.0[(golden(page) >> 58) as usize];
        let before = std::mem::replace(last, line);
        before >> (PAGE - LINE) == page && (1..=NEXT).contains(&line.abs_diff(before))
    }
}

/// The farthest that a line of a stream is from the one before: lines are read in pairs.
const NEXT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::{Cache, Caches, PLACES, Shared};

    /// The places where the lines of some bytes are found.
    fn found(caches: &mut Caches, bytes: impl IntoIterator<Item = u64>) -> [u64; PLACES] {
        let mut places = [0; PLACES];
        bytes.into_iter().for_each(|byte| places[caches.entry(byte)] += 1);
        places
    }

    #[test]
    fn a_line_is_found_where_it_still_fits() {
        let mut caches = Caches::new(&[Cache::new(64, 8), Cache::new(1536, 12)], Shared::InOrder, false);
        assert_eq!(found(&mut caches, [4096]), [0, 0, 0, 1]);
        assert_eq!(found(&mut caches, [4096, 4097, 4159]), [3, 0, 0, 0]);
        // 32 KiB and more push it out of the first level, not out of the second.
        found(&mut caches, (0..1024).map(|line| (1 << 20) | (line * 64)));
        assert_eq!(found(&mut caches, [4096]), [0, 1, 0, 0]);
        // Twice the second level's lines push it out there, too.
        found(&mut caches, (0..36_864).map(|line| (1 << 30) | (line * 64)));
        assert_eq!(found(&mut caches, [4096]), [0, 0, 0, 1]);
    }

    #[test]
    fn lines_that_follow_each_other_in_a_page_come_from_the_second_cache_but_for_the_first() {
        let new = |ahead| Caches::new(&[Cache::new(64, 8), Cache::new(1536, 12)], Shared::InOrder, ahead);
        let mut fetched = 0;
        let mut read = |caches: &mut Caches, bytes: &[u64]| {
            let mut places = [0; PLACES];
            for (place, was_fetched) in bytes.iter().map(|&byte| caches.data(byte)) {
                places[place] += 1;
                fetched += u64::from(was_fetched);
            }
            places
        };
        let page = |page: u64| (0..64).map(|line| (page << 12) + line * 64).collect::<Vec<_>>();
        assert_eq!(read(&mut new(false), &page(1)), [0, 0, 0, 64], "as asked for");
        let mut caches = new(true);
        assert_eq!(read(&mut caches, &page(2)), [0, 63, 0, 1]);
        let backwards: Vec<u64> = page(3).into_iter().rev().collect();
        assert_eq!(read(&mut caches, &backwards), [0, 63, 0, 1]);
        let far: Vec<u64> = (0..16).map(|step| (4 << 12) + step * 7 % 16 * 256).collect();
        assert_eq!(read(&mut caches, &far), [0, 0, 0, 16]);
        let woven: Vec<u64> = page(5)
            .into_iter()
            .zip(page(6))
            .flat_map(|(one, other)| [one, other])
            .collect();
        assert_eq!(read(&mut caches, &woven), [0, 126, 0, 2]);
        assert_eq!(read(&mut caches, &page(6)), [64, 0, 0, 0]);
        assert_eq!(fetched, 63 + 63 + 126);
    }

    #[test]
    fn data_and_entries_share_lines() {
        let mut caches = Caches::new(&[Cache::new(64, 8)], Shared::InOrder, false);
        assert_eq!((caches.data(64), caches.entry(64)), ((PLACES - 1, false), 0));
        assert_eq!((caches.data(65), caches.entry(128)), ((0, false), PLACES - 1));
    }
}
