//! Data caches as far as translation needs them: where page-table lines, and if asked for data lines, are found.

use fearless_simd::{Simd, dispatch};

use crate::access::ADDRESS_BITS;
use crate::keep::{Kept, keep};
use crate::random::{golden, mixed};
use crate::tlb::sets::{Sets, with_sets};
use crate::tlb::touch::{Touch, TouchSets};
use crate::tlb::ways::Replacement;

/// One cache, of 64-byte lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Sets: a power of two is indexed by the line's low bits, others by a hash, as sliced caches are.
    pub sets: u32,
    pub ways: u32,
    /// Which line of a full set goes.
    pub replacement: Replacement,
}

impl Cache {
    pub fn lru(sets: u32, ways: u32) -> Self {
        let replacement = Replacement::Lru;
        Self {
            sets,
            ways,
            replacement,
        }
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

/// A read of a byte: its address in the low bits, and whether it is data or a page-table entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read(u64);

const DATA: u32 = 63;
/// Data that was fetched ahead.
const AHEAD: u32 = 62;
const MARKS: u64 = 1 << DATA | 1 << AHEAD;

impl Read {
    pub(crate) fn data(address: u64) -> Self {
        Self(address | 1 << DATA)
    }

    pub(crate) fn entry(address: u64) -> Self {
        Self(address)
    }

    /// The same byte, if each base page lies anywhere in 4 PiB of memory.
    pub(crate) fn scattered(self) -> Self {
        let address = self.0 & !MARKS;
        let page = crate::random::mixed(address >> PAGE) & ((1 << (ADDRESS_BITS - PAGE)) - 1);
        Self(self.0 & MARKS | page << PAGE | address & ((1 << PAGE) - 1))
    }

    fn line(self) -> u64 {
        (self.0 & !MARKS) >> LINE
    }

    fn is_ahead(self) -> bool {
        self.0 >> AHEAD & 1 == 1
    }

    fn is_data(self) -> bool {
        self.0 >> DATA == 1
    }
}

/// Where lines were found: caches in order, then memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) entries: [u64; PLACES],
    pub(crate) data: [u64; PLACES],
    /// Of the data from the second cache, lines that were fetched there from memory.
    pub(crate) fetched: u64,
}

/// A hierarchy: a line that is missed is brought into every level. Its lines are distinguished by 32 bits of hash: of 4 billion
/// lookups of absent lines about `ways` hit by mistake.
#[derive(Clone, Debug)]
pub(crate) struct Caches {
    levels: Vec<(Cache, Sets)>,
    shared: Shared,
    streams: Option<Streams>,
    open: Kept<Read>,
    missed: Kept<Read>,
}

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

impl Caches {
    /// Empty caches, at most three of them; the first one is asked first.
    pub(crate) fn new(caches: &[Cache], shared: Shared) -> Self {
        let level = |cache: &Cache| (*cache, Sets::new(cache.sets, cache.ways, cache.replacement));
        Self {
            levels: caches.iter().take(PLACES - 1).map(level).collect(),
            shared,
            streams: None,
            open: Kept::default(),
            missed: Kept::default(),
        }
    }

    /// From now on lines are fetched into the second cache ahead of a stream.
    pub(crate) fn fetch_ahead(&mut self) {
        self.streams = Some(Streams::default());
    }

    /// Reads bytes in their order, level by level; is any of them data? The list is used up.
    pub(crate) fn read(&mut self, reads: &mut Kept<Read>, has_data: bool) -> Found {
        let mut found = Found::default();
        std::mem::swap(&mut self.open, reads);
        for (place, (cache, sets)) in self.levels.iter_mut().enumerate() {
            let is_hashed = place == SHARED && self.shared != Shared::InOrder;
            if is_hashed {
                self.open.as_mut().iter_mut().for_each(|read| *read = read.scattered());
            }
            let low = if is_hashed { cache.sets.trailing_zeros() } else { 0 };
            dispatch!(fearless_simd::Level::new(), simd => {
                with_sets!(sets, sets => look_up(simd, *cache, low, sets, &self.open, &mut self.missed));
            });
            let count = |reads: &[Read]| count(reads, has_data);
            let (before, after) = (count(&self.open), count(&self.missed));
            found.entries[place] = before.0 - after.0;
            found.data[place] = before.1 - after.1;
            std::mem::swap(&mut self.open, &mut self.missed);
            if place == 0
                && let Some(streams) = self.streams.as_mut().filter(|_| has_data)
            {
                streams.mark(self.open.as_mut());
            }
            if place > 0 && self.streams.is_some() {
                found.ahead(place, ahead(&self.missed) - ahead(&self.open));
            }
        }
        let (entries, data) = count(&self.open, has_data);
        found.entries[PLACES - 1] += entries;
        found.data[PLACES - 1] += data;
        if self.streams.is_some() {
            found.ahead(PLACES - 1, ahead(&self.open));
        }
        found
    }
}

impl Found {
    /// So many of the data found at a place had been fetched into the second cache.
    fn ahead(&mut self, place: usize, count: u64) {
        self.data[place] -= count;
        self.data[FETCHED] += count;
        self.fetched += if place == PLACES - 1 { count } else { 0 };
    }
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
    /// Marks data that was fetched ahead.
    fn mark(&mut self, reads: &mut [Read]) {
        for read in reads.iter_mut().filter(|read| read.is_data()) {
            let line = read.line();
            let page = line >> (PAGE - LINE);
            let last = &mut self.0[(golden(page) >> 58) as usize];
            if *last >> (PAGE - LINE) == page && (1..=NEXT).contains(&line.abs_diff(*last)) {
                read.0 |= 1 << AHEAD;
            }
            *last = line;
        }
    }
}

/// The farthest that a line of a stream is from the one before: lines are read in pairs.
const NEXT: u64 = 2;

/// Data that was fetched ahead.
fn ahead(reads: &[Read]) -> u64 {
    reads.iter().map(|read| u64::from(read.is_ahead())).sum()
}

/// Entries and data, of which there may be none.
fn count(reads: &[Read], has_data: bool) -> (u64, u64) {
    let data = if has_data {
        reads.iter().map(|read| u64::from(read.is_data())).sum()
    } else {
        0
    };
    (reads.len() as u64 - data, data)
}

/// Asks one level; `missed` are then the reads that it does not have. Of sets that are no power of two, `low` bits of the line choose within a
/// slice, and a hash chooses the slice.
#[inline(always)]
fn look_up<S: Simd>(simd: S, cache: Cache, low: u32, sets: &mut impl Touch, reads: &[Read], missed: &mut Kept<Read>) {
    let mut sets = sets.lend();
    if cache.sets.is_power_of_two() {
        let mask = u64::from(cache.sets - 1);
        keep(reads, missed, |read| {
            let line = read.line();
            // Different for lines less than 100 GiB apart, but for the tags 0 and 1.
            let tag = (golden(line) >> 32) as u32;
            !sets.touch(simd, (line & mask) as usize, tag.max(1))
        });
    } else {
        let (slices, mask) = (u64::from(cache.sets >> low), (1_u64 << low) - 1);
        keep(reads, missed, |read| {
            let line = read.line();
            let hash = mixed(line);
            let slice = ((hash >> 32) * slices) >> 32;
            !sets.touch(simd, (slice << low | line & mask) as usize, (hash as u32).max(1))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Caches, Found, Kept, PLACES, Read, Shared};

    /// The places where the lines of some bytes are found.
    fn found(caches: &mut Caches, bytes: impl IntoIterator<Item = u64>) -> [u64; PLACES] {
        let mut reads = Kept::default();
        reads.fill_with(bytes.into_iter().map(Read::entry));
        caches.read(&mut reads, false).entries
    }

    #[test]
    fn a_line_is_found_where_it_still_fits() {
        let mut caches = Caches::new(&[Cache::lru(64, 8), Cache::lru(1536, 12)], Shared::InOrder);
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
        let mut caches = Caches::new(&[Cache::lru(64, 8), Cache::lru(1536, 12)], Shared::InOrder);
        let mut fetched = 0;
        let mut read = |caches: &mut Caches, bytes: &[u64]| {
            let mut list = Kept::default();
            list.fill_with(bytes.iter().map(|&byte| Read::data(byte)));
            let found = caches.read(&mut list, true);
            fetched += found.fetched;
            found.data
        };
        let page = |page: u64| (0..64).map(|line| (page << 12) + line * 64).collect::<Vec<_>>();
        assert_eq!(read(&mut caches, &page(1)), [0, 0, 0, 64], "as asked for");
        caches.fetch_ahead();
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
    fn data_and_entries_share_lines_and_are_counted_apart() {
        let mut caches = Caches::new(&[Cache::lru(64, 8)], Shared::InOrder);
        let reads = [Read::data(64), Read::entry(64), Read::data(65), Read::entry(128)];
        let expected = Found {
            entries: [1, 0, 0, 1],
            data: [1, 0, 0, 1],
            fetched: 0,
        };
        let mut list = Kept::default();
        list.copy(&reads);
        assert_eq!(caches.read(&mut list, true), expected);
    }
}
