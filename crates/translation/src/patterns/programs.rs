//! What programs do, in outline: index lookups, garbage collection, processes that come and go.

use crate::access::{Access, Side};
use crate::engine::{BLOCK, Event};
use crate::random::{Chance, Permutation};

/// Bytes of a block of an index or a table: PostgreSQL's default.
const NODE: u64 = 8192;
/// Children of an inner block: keys and pointers of 32 bytes each.
const FANOUT: u64 = 256;
/// Bytes of a base page, which processes touch one by one.
const PAGE: u64 = 4096;

/// Lookups through a B-tree. Its levels lie one after the other, the root first, then the rows; the log lies at the end.
pub(super) fn btree(size: u64, seed: u64) -> impl FnMut(&mut Vec<Access>) -> Option<Event> {
    let log = (size / 64).max(PAGE) / PAGE * PAGE;
    // A leaf block points at FANOUT rows; rows are a block each in the worst case, so leaves are 1/FANOUT of them.
    let rows = ((size - log) / NODE * FANOUT / (FANOUT + 2)).max(1);
    let mut counts = vec![rows.div_ceil(FANOUT)];
    while counts[0] > 1 {
        counts.insert(0, counts[0].div_ceil(FANOUT));
    }
    let mut end = 0;
    let place = |blocks: u64| {
        let first = end;
        end += blocks * NODE;
        (first, blocks)
    };
    // First byte and blocks of each.
    let levels: Vec<(u64, u64)> = counts.into_iter().map(place).collect();
    let (mut written, mut chance) = (0, Chance::new(seed));
    move |block| {
        while block.len() + 8 * (levels.len() + 2) < BLOCK {
            let row = chance.below(rows);
            for &(first, blocks) in &levels {
                let node = first + (u128::from(row) * u128::from(blocks) / u128::from(rows)) as u64 * NODE;
                block.push(Access::load(node));
                // Binary search over FANOUT keys ends within few lines of the last ones it looked at.
                block.extend((0..4).map(|_| Access::load(node + chance.below(NODE / 64) * 64)));
            }
            let row = end + row * NODE + chance.below(NODE / 64) * 64;
            block.extend([Access::load(row), Access::new(row, Side::Store)]);
            block.push(Access::new(size - log + written, Side::Store));
            written = (written + 64) % log;
        }
        None
    }
}

/// Marks objects in random order, then moves them in order to the other half.
pub(super) fn collector(size: u64, seed: u64) -> impl FnMut(&mut Vec<Access>) -> Option<Event> {
    // Lines of half the memory.
    let lines = size / 2 / 64;
    let (order, mut step) = (Permutation::new(lines, seed), 0);
    move |block| {
        while block.len() + 2 <= BLOCK {
            let (from, to) = match step {
                mark if mark < lines => (order.at(mark), order.at(mark)),
                moved => (moved - lines, moved),
            };
            block.extend([Access::load(from * 64), Access::new(to * 64, Side::Store)]);
            step = (step + 1) % (2 * lines);
        }
        None
    }
}

/// Accesses that a process makes to each page it has mapped.
const TOUCHES: usize = 16;
/// Base pages of one process: 1 MiB, as a short-lived compiler or shell command has.
const PAGES_EACH: u64 = 256;

/// Processes one after the other in the working set: each maps its pages (a page-table write and some accesses each), then unmaps them (a
/// write and an invalidation each) and ends with a switch. The next process has the memory of any.
pub(super) fn churn(size: u64, seed: u64) -> impl FnMut(&mut Vec<Access>) -> Option<Event> {
    let processes = (size / (PAGES_EACH * PAGE)).max(1);
    let pages = PAGES_EACH.min(16 * processes);
    let (mut process, mut next, mut chance) = (0_u64, 0_u64, Chance::new(seed));
    move |block| {
        let (base, step) = (process * PAGES_EACH * PAGE, next);
        let page = |number: u64| base + number * PAGE;
        next += 1;
        match step {
            _ if step < 2 * pages => {
                if step.is_multiple_of(2) {
                    return Some(Event::TableWrite(page(step / 2)));
                }
                let (first, mapped) = (page(step / 2), step / 2 + 1);
                block.push(Access::new(first, Side::Store));
                for _ in 1..TOUCHES {
                    let any = page(chance.below(mapped)) + chance.below(PAGE / 64) * 64;
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
                next = 0;
                process = chance.below(processes);
                Some(Event::Switch)
            }
        }
    }
}
