//! Patterns of access that need no trace: each access costs the same however many there are, and memory stays small.

mod heap;
mod programs;
mod simple;
#[cfg(test)]
mod tests;
mod threads;
mod zipf;

use std::convert::Infallible;

use model::{Bytes, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::engine::{Accesses, Event};

pub use threads::Threads;

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
        /// A chain with a step of 512 bytes, over and over.
        Memtest = "memtest",
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
        matches!(self, Self::Chase | Self::Memtest | Self::Btree)
    }

    /// Its accesses within a working set of at least 64 KiB.
    pub fn over(self, working_set: Bytes, seed: u64) -> Generator {
        Generator::new(self, Bytes(working_set.0.max(SMALLEST.0)), seed)
    }
}

/// The smallest working set of a pattern.
pub const SMALLEST: Bytes = Bytes::kib(64);

/// A running pattern.
#[derive(Clone, Debug)]
pub struct Generator(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Random(simple::Random),
    Chase(simple::Chase),
    Zipf(zipf::ZipfPages),
    Steps(simple::Steps),
    Btree(programs::Btree),
    Gc(programs::Collector),
    Heap(heap::Heap),
    Churn(programs::Churn),
}

impl Generator {
    fn new(pattern: Pattern, size: Bytes, seed: u64) -> Self {
        Self(match pattern {
            Pattern::Random => Kind::Random(simple::Random::new(size, seed)),
            Pattern::Chase => Kind::Chase(simple::Chase::new(size, seed)),
            Pattern::Zipf => Kind::Zipf(zipf::ZipfPages::new(size, seed)),
            Pattern::Stream => Kind::Steps(simple::Steps::new(size, 8)),
            Pattern::Stride => Kind::Steps(simple::Steps::new(size, 4096 + 64)),
            Pattern::Memtest => Kind::Steps(simple::Steps::new(size, 512)),
            Pattern::Btree => Kind::Btree(programs::Btree::new(size, seed)),
            Pattern::Gc => Kind::Gc(programs::Collector::new(size, seed)),
            Pattern::Heap => Kind::Heap(heap::Heap::new(size, seed)),
            Pattern::Churn => Kind::Churn(programs::Churn::new(size, seed)),
        })
    }
}

impl Accesses for Generator {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
        match &mut self.0 {
            Kind::Random(pattern) => pattern.fill(block),
            Kind::Chase(pattern) => pattern.fill(block),
            Kind::Zipf(pattern) => pattern.fill(block),
            Kind::Steps(pattern) => pattern.fill(block),
            Kind::Btree(pattern) => pattern.fill(block),
            Kind::Gc(pattern) => pattern.fill(block),
            Kind::Heap(pattern) => pattern.fill(block),
            Kind::Churn(pattern) => return Ok(pattern.fill(block)),
        }
        Ok(None)
    }
}
