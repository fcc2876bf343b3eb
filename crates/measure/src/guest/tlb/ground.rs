//! Where probes visit: windows of a guest onto one stretch of host memory, and the words of it that take part. Pure.

use std::collections::HashSet;

use model::guest::GuestPage;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use vm::Window;
use vm::visits::Node;

use crate::tlb::probe::Probe;

/// A line of the caches.
pub(super) const LINE: u64 = 64;
/// A small page.
pub(super) const SMALL: u64 = GuestPage::Size4K.size().0;
/// A large page.
pub(super) const LARGE: u64 = GuestPage::Size2M.size().0;
/// Lines of a small page: visits take them in turn, so that data spreads over all sets of the first-level cache.
pub(super) const LINES: u64 = SMALL / LINE;

/// Windows begin here, each 256 GiB from the next: above what the guest has for itself, below where programs usually are.
const FIRST: u64 = 1 << 36;
const APART: u64 = 1 << 38;

/// The beginning of a window.
pub(super) fn place(number: u64) -> u64 {
    FIRST + number * APART
}

/// Pages that lead to memory in order.
pub(super) fn plain(number: u64, page: GuestPage, bytes: u64) -> Window {
    let size = page.size().0;
    Window {
        virt: place(number),
        page,
        frames: (0..bytes / size).map(|page| page * size).collect(),
        entries: None,
    }
}

/// Many pages that lead to few frames: page numbers scattered over the first `frames` pages of the memory.
pub(super) fn folded(number: u64, page: GuestPage, pages: u64, frames: u64) -> Window {
    let size = page.size().0;
    Window {
        virt: place(number),
        page,
        frames: (0..pages).map(|page| scattered(page) % frames * size).collect(),
        entries: None,
    }
}

/// `0..n` in an order that depends on the seed.
pub(super) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut rand_pcg::Pcg64Mcg::seed_from_u64(seed));
    order
}

/// A number that looks random, the same for the same page at all strides (Fibonacci hashing, Knuth 6.4).
pub(super) fn scattered(page: u64) -> u64 {
    page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Nodes for visits of a window's pages, in the order given: each has a line of its own, whatever frames the pages share.
/// Within a small page the lines are numbered by visit, modulo `lines`; within large pages they are scattered over small ones.
pub(super) fn nodes(window: &Window, probe: Probe, order: &[usize], lines: u64) -> Vec<Node> {
    let size = window.page.size().0;
    let mut taken = HashSet::with_capacity(order.len());
    let visit = |&index: &usize| {
        let page = probe.layout.page(index as u32);
        let frame = window.frames.get(page as usize)?;
        let wished = (scattered(page) >> 16) * SMALL + index as u64 % lines * LINE;
        let within = (0..size / LINE)
            .map(|more| (wished + more * LINE) % size)
            .find(|within| taken.insert(frame + within))?;
        Some(Node {
            virt: window.virt + page * size + within,
            offset: frame + within,
        })
    };
    order.iter().filter_map(visit).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use model::guest::GuestPage;

    use super::{LARGE, LINE, SMALL, folded, nodes};
    use crate::tlb::probe::{Layout, Probe, Sweep};

    #[test]
    fn many_pages_on_few_frames_have_a_line_each_at_every_stride() {
        let small = folded(0, GuestPage::Size4K, 1 << 18, 256);
        let large = folded(1, GuestPage::Size2M, 1 << 13, 4);
        for (window, pages, size) in [(&small, 9000, SMALL), (&large, 6000, LARGE)] {
            for stride in [0, 1, 5] {
                let layout = Layout::strided(stride);
                let pages = pages.min((window.frames.len() >> stride) as u32);
                let probe = Probe {
                    sweep: Sweep::Far,
                    layout,
                    pages,
                };
                let order: Vec<usize> = (0..pages as usize).rev().collect();
                let nodes = nodes(window, probe, &order, 64);
                let offsets: HashSet<u64> = nodes.iter().map(|node| node.offset / LINE).collect();
                let visited: HashSet<u64> = nodes.iter().map(|node| (node.virt - window.virt) / size).collect();
                assert_eq!((offsets.len(), visited.len()), (pages as usize, pages as usize));
                for node in &nodes {
                    let page = (node.virt - window.virt) / size;
                    assert_eq!(window.frames[page as usize] + node.virt % size, node.offset);
                }
            }
        }
    }
}
