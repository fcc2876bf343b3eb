//! The miss ratio of fully associative LRU for every number of entries at once, from the reuse distances of sampled pages.
//!
//! Pages are sampled by their hash (SHARDS: Waldspurger, Park, Garthwaite and Ahmad, FAST 2015), at a rate that falls so
//! that a fixed number of pages is kept. A distance between two accesses to a sampled page is counted in sampled pages, and stands for
//! as many more as the rate says. At rate 1 this is Mattson's algorithm, and exact.

use std::collections::BinaryHeap;

use model::Bytes;

use crate::access::Access;
use crate::random::mixed;
use crate::reuse::Reuse;
use crate::setting::shift;

/// Hashes are compared by so many bits: a rate is a multiple of 2^-24.
const BITS: u32 = 24;

/// A curve that grows with the accesses it is given. Its memory grows with the sampled pages only.
#[derive(Clone, Debug)]
pub struct Shards {
    shift: u32,
    /// A page is sampled if its hash is below this.
    below: u32,
    /// Pages that are kept at most, and those kept by hash.
    most: usize,
    by_hash: BinaryHeap<(u32, u64)>,
    last: u64,
    /// Pages of a block that are sampled.
    sampled: Vec<u64>,
    reuse: Reuse,
    distances: Distances,
    accesses: u64,
    /// Those whose page is not that of the access before.
    fresh: u64,
}

impl Shards {
    /// All pages are sampled until there are more than `most` (at least 1); from then on those with the lowest hashes.
    pub fn new(page: Bytes, most: usize) -> Self {
        Self {
            shift: shift(page),
            below: 1 << BITS,
            most: most.max(1),
            by_hash: BinaryHeap::new(),
            last: u64::MAX,
            sampled: Vec::new(),
            reuse: Reuse::default(),
            distances: Distances::default(),
            accesses: 0,
            fresh: 0,
        }
    }

    /// Counts accesses in their order.
    pub fn block(&mut self, accesses: &[Access]) {
        self.sampled.clear();
        self.find_sampled(accesses);
        self.accesses += accesses.len() as u64;
        for number in 0..self.sampled.len() {
            self.sample(self.sampled[number]);
        }
    }

    /// Likewise accesses that warm up: the pages stay known, and nothing is counted.
    pub fn pass(&mut self, accesses: &[Access]) {
        let kept = (std::mem::take(&mut self.distances), self.accesses, self.fresh);
        self.block(accesses);
        (self.distances, self.accesses, self.fresh) = kept;
    }

    /// Finds the accesses to sampled pages that repeat nothing.
    fn find_sampled(&mut self, accesses: &[Access]) {
        for access in accesses {
            let page = access.address() >> self.shift;
            // A repetition is a hit in any TLB; there is no need to estimate how many there are.
            if page == self.last {
                continue;
            }
            self.last = page;
            self.fresh += 1;
            if hash(page) < self.below {
                self.sampled.push(page);
            }
        }
    }

    fn sample(&mut self, page: u64) {
        // The rate may have fallen within this block.
        let hash = hash(page);
        if hash >= self.below {
            return;
        }
        let each = 1.0 / self.rate();
        match self.reuse.access(page) {
            Some(distance) => self.distances.add((f64::from(distance) * each) as u64, each),
            None => {
                self.distances.first += each;
                self.keep_most(hash, page);
            }
        }
    }

    /// Lowers the rate so that no more pages than wanted are kept.
    fn keep_most(&mut self, hash: u32, page: u64) {
        self.by_hash.push((hash, page));
        if self.by_hash.len() <= self.most {
            return;
        }
        if let Some(&(highest, _)) = self.by_hash.peek() {
            self.below = highest;
        }
        while let Some(&(hash, page)) = self.by_hash.peek()
            && hash >= self.below
        {
            self.by_hash.pop();
            self.reuse.forget(page);
        }
    }

    /// The share of pages that is sampled now.
    pub fn rate(&self) -> f64 {
        f64::from(self.below) / f64::from(1 << BITS)
    }

    /// The share of accesses that miss in a fully associative TLB of so many entries under LRU. From 16,384 on, entries are rounded by
    /// less than 1 in 8,192. Fewer entries than one sampled page stands for are not resolved.
    pub fn miss_ratio(&self, entries: u64) -> f64 {
        if self.accesses == 0 {
            return 0.0;
        }
        if entries == 0 {
            return 1.0;
        }
        // What the sample counts too few or too many is mostly due to a few pages with many accesses, which hit (SHARDS-adj).
        let misses = self.distances.first + self.distances.from(entries);
        misses.min(self.fresh as f64) / self.accesses as f64
    }
}

fn hash(page: u64) -> u32 {
    // Not the highest bits, in which sampled pages would then be alike: the table of pages uses those.
    (mixed(page) >> 24) as u32 & ((1 << BITS) - 1)
}

/// How many accesses had which reuse distance: the number of other pages since the access before to the same page.
#[derive(Clone, Debug, Default)]
struct Distances {
    /// Those to pages that were never accessed before.
    first: f64,
    /// By the number of the distance's range.
    counts: Vec<f64>,
}

/// Distances below twice this have a range each; from there on every power of two has so many ranges.
const RANGES: u32 = 1 << 13;

/// The number of the range that a distance is in.
fn range(distance: u64) -> usize {
    let above = (distance / u64::from(RANGES)).checked_ilog2().unwrap_or(0);
    (u64::from(above * RANGES) + (distance >> above)) as usize
}

impl Distances {
    fn add(&mut self, distance: u64, count: f64) {
        let range = range(distance);
        if self.counts.len() <= range {
            self.counts.resize(range + 1, 0.0);
        }
        self.counts[range] += count;
    }

    /// Those of at least that distance.
    fn from(&self, distance: u64) -> f64 {
        self.counts.iter().skip(range(distance)).sum()
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
