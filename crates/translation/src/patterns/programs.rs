//! What programs do, in outline: index lookups, garbage collection, processes that come and go.

use model::Bytes;

use crate::access::{Access, Side};
use crate::engine::BLOCK;
use crate::engine::Event;
use crate::random::{Chance, Permutation};

/// Bytes of a block of an index or a table: PostgreSQL's default.
const NODE: u64 = 8192;
/// Children of an inner block: keys and pointers of 32 bytes each.
const FANOUT: u64 = 256;
/// Bytes of a base page, which processes touch one by one.
const PAGE: u64 = 4096;

/// Lookups through a B-tree. Its levels lie one after the other, then the rows; the log lies at the end.
#[derive(Clone, Debug)]
pub(super) struct Btree {
    /// First byte and blocks of each level, the root first.
    levels: Vec<(u64, u64)>,
    rows: (u64, u64),
    log: (u64, u64),
    written: u64,
    chance: Chance,
}

impl Btree {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        let log = (size.0 / 64).max(PAGE) / PAGE * PAGE;
        // A leaf block points at FANOUT rows; rows are a block each in the worst case, so leaves are 1/FANOUT of them.
        let rows = ((size.0 - log) / NODE * FANOUT / (FANOUT + 2)).max(1);
        let mut counts = vec![rows.div_ceil(FANOUT)];
        while counts[0] > 1 {
            counts.insert(0, counts[0].div_ceil(FANOUT));
        }
        let mut at = 0;
        let mut place = |blocks: u64| {
            let place = (at, blocks);
            at += blocks * NODE;
            place
        };
        let levels = counts.into_iter().map(&mut place).collect();
        let rows = place(rows);
        Self {
            levels,
            rows,
            log: (size.0 - log, log),
            written: 0,
            chance: Chance::new(seed),
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        while block.len() + 8 * (self.levels.len() + 2) < BLOCK {
            self.lookup(block);
        }
    }

    fn lookup(&mut self, block: &mut Vec<Access>) {
        let row = self.chance.below(self.rows.1);
        for &(from, blocks) in &self.levels {
            let node = from + (u128::from(row) * u128::from(blocks) / u128::from(self.rows.1)) as u64 * NODE;
            block.push(Access::load(node));
            // Binary search over FANOUT keys ends within few lines of the last ones it looked at.
            block.extend((0..4).map(|_| Access::load(node + self.chance.below(NODE / 64) * 64)));
        }
        let row = self.rows.0 + row * NODE + self.chance.below(NODE / 64) * 64;
        block.extend([Access::load(row), Access::new(row, Side::Store)]);
        block.push(Access::new(self.log.0 + self.written, Side::Store));
        self.written = (self.written + 64) % self.log.1;
    }
}

/// Marks objects in random order, then moves them in order to the other half.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    /// Lines of half the memory.
    lines: u64,
    order: Permutation,
    marked: u64,
    moved: u64,
}

impl Collector {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        let lines = size.0 / 2 / 64;
        Self {
            lines,
            order: Permutation::new(lines, seed),
            marked: 0,
            moved: 0,
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        while block.len() + 2 <= BLOCK {
            if self.marked < self.lines {
                let object = self.order.at(self.marked) * 64;
                block.extend([Access::load(object), Access::new(object, Side::Store)]);
                self.marked += 1;
            } else {
                let (from, to) = (self.moved * 64, (self.lines + self.moved) * 64);
                block.extend([Access::load(from), Access::new(to, Side::Store)]);
                self.moved += 1;
                if self.moved == self.lines {
                    (self.marked, self.moved) = (0, 0);
                }
            }
        }
    }
}

/// Accesses that a process makes to each page it has mapped.
const TOUCHES: usize = 16;
/// Base pages of one process: 1 MiB, as a short-lived compiler or shell command has.
const PAGES_EACH: u64 = 256;

/// Processes one after the other in the working set: each maps its pages (a page-table write and some accesses each), then unmaps them (a
/// write and an invalidation each) and ends with a switch. The next process has the memory of any.
#[derive(Clone, Debug)]
pub(super) struct Churn {
    processes: u64,
    process: u64,
    step: u64,
    chance: Chance,
}

impl Churn {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        Self {
            processes: (size.0 / (PAGES_EACH * PAGE)).max(1),
            process: 0,
            step: 0,
            chance: Chance::new(seed),
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) -> Option<Event> {
        let pages = PAGES_EACH.min(16 * self.processes);
        let base = self.process * PAGES_EACH * PAGE;
        let step = self.step;
        self.step += 1;
        let page = |number: u64| base + number * PAGE;
        match step {
            _ if step < 2 * pages => {
                if step.is_multiple_of(2) {
                    return Some(Event::TableWrite(page(step / 2)));
                }
                let (first, mapped) = (page(step / 2), step / 2 + 1);
                block.push(Access::new(first, Side::Store));
                for _ in 1..TOUCHES {
                    let any = page(self.chance.below(mapped)) + self.chance.below(PAGE / 64) * 64;
                    block.push(Access::load(any));
                }
                None
            }
            _ if step < 4 * pages => {
                let address = page((step - 2 * pages) / 2);
                Some(if step.is_multiple_of(2) {
                    Event::TableWrite(address)
                } else {
                    Event::Invalidate(address)
                })
            }
            _ => {
                self.step = 0;
                self.process = self.chance.below(self.processes);
                Some(Event::Switch)
            }
        }
    }
}
