//! Patterns of access that need no trace: each access costs the same however many there are, and memory stays small.

mod heap;
mod programs;
mod simple;
#[cfg(test)]
mod tests;
mod zipf;

use std::convert::Infallible;

use model::{Bytes, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::engine::{Accesses, BLOCK, Event};

names! {
    /// A pattern.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Pattern, "a pattern" {
        /// Loads of 8 bytes anywhere, independent of each other.
        Random = "random",
        /// A ring through all lines in random order: each load has the address of the next.
        Chase = "chase",
        /// Loads of lines on pages drawn by Zipf's law with exponent 0.99, popular pages anywhere.
        Zipf = "zipf",
        /// Loads of 8 bytes in a row.
        Stream = "stream",
        /// Loads 4 KiB and a line apart, over and over.
        Stride = "stride",
        /// A chain as memtest's: down by 512 bytes, and in the next pass through the lines below those of this one.
        Memtest = "memtest",
        /// A line on each 2 MiB, in random order, over and over: each load has the address of the next.
        Sparse = "sparse",
        /// Lookups of random rows through a B-tree of 8 KiB blocks, with a log that is written.
        Btree = "btree",
        /// A collector: objects are marked in random order, then moved together.
        Gc = "gc",
        /// A Java heap in use: popular objects among 224 MiB that live, new ones in a row over the rest, and a collection whenever that is full.
        Heap = "heap",
        /// Processes that start, touch their memory and end: page tables are written all the time.
        Churn = "churn",
    }
}

impl Pattern {
    /// Does every access wait for the one before?
    pub fn is_dependent(self) -> bool {
        matches!(self, Self::Chase | Self::Memtest | Self::Sparse | Self::Btree)
    }

    /// The accesses of so many threads to the same working set of at least 64 KiB, one for each virtual CPU. The first has those of a
    /// single one.
    pub fn threads(self, working_set: Bytes, seed: u64, vcpus: u16) -> Threads {
        let (size, vcpus) = (working_set.0.max(SMALLEST.0), vcpus.max(1));
        let thread = |number: u16| self.running(size, seed.wrapping_add(u64::from(number) << 32));
        Threads {
            threads: (0..vcpus).map(thread).collect(),
            latest: usize::from(vcpus) - 1,
        }
    }

    fn running(self, size: u64, seed: u64) -> Running {
        match self {
            Self::Random => loads(simple::random(size, seed)),
            Self::Chase => loads(simple::chase(size, seed)),
            Self::Zipf => loads(zipf::lines(size, seed)),
            Self::Stream => loads(simple::steps(size, 8)),
            Self::Stride => loads(simple::steps(size, 4096 + 64)),
            Self::Memtest => loads(simple::down(size, 512)),
            Self::Sparse => loads(simple::sparse(size, seed)),
            Self::Btree => Box::new(programs::btree(size, seed)),
            Self::Gc => Box::new(programs::collector(size, seed)),
            Self::Heap => Box::new(heap::heap(size, seed)),
            Self::Churn => Box::new(programs::churn(size, seed)),
        }
    }
}

/// The smallest working set of a pattern.
pub const SMALLEST: Bytes = Bytes::kib(64);

/// A running pattern: it adds at most a block of accesses, and says what happens after them.
type Running = Box<dyn FnMut(&mut Vec<Access>) -> Option<Event> + Send>;

fn loads(mut address: impl FnMut() -> u64 + Send + 'static) -> Running {
    Box::new(move |block| {
        block.extend((0..BLOCK).map(|_| Access::load(address())));
        None
    })
}

/// A pattern on one virtual CPU or several, a block at a time by turns.
pub struct Threads {
    threads: Vec<Running>,
    /// The one that made what came last.
    latest: usize,
}

impl Accesses for Threads {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
        self.latest = (self.latest + 1) % self.threads.len();
        Ok(self.threads[self.latest](block))
    }

    fn vcpu(&self) -> usize {
        self.latest
    }
}
