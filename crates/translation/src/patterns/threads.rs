//! Threads of one process: each makes accesses of its own to the same memory, a block at a time by turns.

use std::convert::Infallible;

use model::Bytes;

use super::{Generator, Pattern};
use crate::access::Access;
use crate::engine::{Accesses, Event};

/// A pattern on several virtual CPUs.
#[derive(Clone, Debug)]
pub struct Threads {
    threads: Vec<Generator>,
    /// The one that made what came last.
    latest: usize,
}

impl Pattern {
    /// The accesses of so many threads within a working set, one for each virtual CPU. The first has those of a single one.
    pub fn threads(self, working_set: Bytes, seed: u64, vcpus: u16) -> Threads {
        let vcpus = vcpus.max(1);
        let thread = |number: u16| self.over(working_set, seed.wrapping_add(u64::from(number) << 32));
        Threads {
            threads: (0..vcpus).map(thread).collect(),
            latest: usize::from(vcpus) - 1,
        }
    }
}

impl Accesses for Threads {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
        self.latest = (self.latest + 1) % self.threads.len();
        self.threads[self.latest].fill(block)
    }

    fn vcpu(&self) -> usize {
        self.latest
    }
}
