//! Data caches as far as translation needs them: where page-table lines, and if asked for data lines, are found.

use super::random::mixed;
use super::sets::Sets;
use crate::ways::Replacement;

/// One cache, of 64-byte lines under LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Sets: a power of two is indexed by the line's low bits, others by a hash, as sliced caches are.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

/// Cache levels that a result tells apart: first to third, and memory behind them.
pub const PLACES: usize = 4;

/// Address bits within a line.
const LINE: u32 = 6;

/// A hierarchy: a line that is missed is brought into every level. Its lines are told apart by 32 bits of hash: of 4 billion
/// lookups of absent lines about `ways` hit by mistake.
#[derive(Clone, Debug)]
pub(super) struct Caches {
    levels: Vec<(Cache, Sets)>,
}

impl Caches {
    /// Empty caches, at most three of them; the first one is asked first.
    pub(super) fn new(caches: &[Cache]) -> Self {
        let level = |cache: &Cache| (*cache, Sets::new(cache.sets, cache.ways, Replacement::Lru));
        Self {
            levels: caches.iter().take(PLACES - 1).map(level).collect(),
        }
    }

    /// Reads a byte; returns the number of the level that had its line, or that of memory, which is [`PLACES`] - 1.
    #[inline]
    pub(super) fn read(&mut self, byte: u64) -> usize {
        let line = byte >> LINE;
        let hash = mixed(line);
        let tag = (hash as u32).max(1);
        for (number, (cache, sets)) in self.levels.iter_mut().enumerate() {
            let set = if cache.sets.is_power_of_two() {
                line as u32 & (cache.sets - 1)
            } else {
                (((hash >> 32) * u64::from(cache.sets)) >> 32) as u32
            };
            if sets.touch(set as usize, tag) {
                return number;
            }
        }
        PLACES - 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Caches, PLACES};

    #[test]
    fn a_line_is_found_where_it_still_fits() {
        let mut caches = Caches::new(&[Cache { sets: 64, ways: 8 }, Cache { sets: 1536, ways: 12 }]);
        assert_eq!(caches.read(4096), PLACES - 1);
        assert_eq!([4096, 4097, 4159].map(|byte| caches.read(byte)), [0; 3]);
        // 32 KiB and more push it out of the first level, not out of the second.
        (0..1024).for_each(|line| _ = caches.read((1 << 20) | (line * 64)));
        assert_eq!(caches.read(4096), 1);
        // Twice the second level's lines push it out there, too.
        (0..36_864).for_each(|line| _ = caches.read((1 << 30) | (line * 64)));
        assert_eq!(caches.read(4096), PLACES - 1);
    }
}
