//! Orders of visit: where the nodes of a pattern stand, and which comes after which. Pure arithmetic.

use model::Bytes;
use model::latency::Pattern;

use crate::shuffle::{Shuffle, splitmix};

/// Bytes of one cache line on every x86-64 CPU.
pub const LINE: u64 = 64;
/// The grain of the page patterns: base pages, whatever backs them, so that kinds are compared on the same visits.
const PAGE: u64 = 4096;
const LINES_PER_PAGE: u64 = PAGE / LINE;

/// A closed tour through the lines that a pattern visits in a working set.
#[derive(Clone, Debug)]
pub struct Order {
    pattern: Pattern,
    nodes: u64,
    seed: u64,
    shuffle: Shuffle,
    start: u64,
}

impl Order {
    /// The tour of a pattern over `bytes`; `None` if the working set is too small to hold two nodes.
    pub fn new(pattern: Pattern, bytes: Bytes, seed: u64) -> Option<Self> {
        let nodes = match pattern {
            Pattern::RandomLine => bytes.0 / LINE,
            Pattern::PageRandom => bytes.0 / PAGE * LINES_PER_PAGE,
            Pattern::LinePerPage => bytes.0 / PAGE,
            Pattern::Stride(step) => bytes.0 / step.0,
        };
        let shuffled = if pattern == Pattern::PageRandom {
            LINES_PER_PAGE
        } else {
            nodes
        };
        (nodes >= 2).then(|| Self {
            pattern,
            nodes,
            seed,
            shuffle: Shuffle::new(shuffled, seed),
            start: 0,
        })
    }

    /// The same tour through memory that begins so far (whole pages) into the arena.
    ///
    /// # Panics
    /// If that is not a multiple of 4 KiB.
    pub fn beginning_at(mut self, start: Bytes) -> Self {
        assert!(start.0.is_multiple_of(PAGE), "working sets begin on a page");
        self.start = start.0;
        self
    }

    /// How many nodes the tour has.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Byte offset of the line of node `index`, indices in order of address.
    pub fn offset(&self, index: u64) -> u64 {
        let within = match self.pattern {
            Pattern::RandomLine | Pattern::PageRandom => index * LINE,
            // A different line in each page, or all nodes would fight for a few cache sets.
            Pattern::LinePerPage => index * PAGE + self.scatter(index) * LINE,
            Pattern::Stride(step) => index * step.0,
        };
        self.start + within
    }

    /// The node whose line begins at that offset: the way back from [`Self::offset`].
    pub fn index(&self, offset: u64) -> u64 {
        let within = offset - self.start;
        match self.pattern {
            Pattern::RandomLine | Pattern::PageRandom => within / LINE,
            Pattern::LinePerPage => within / PAGE,
            Pattern::Stride(step) => within / step.0,
        }
    }

    /// Calls `visit` with each of the next `steps` nodes after `index`, in the order of the tour, and returns the last.
    pub fn follow(&self, index: u64, steps: u64, mut visit: impl FnMut(u64)) -> u64 {
        let mut last = index;
        let mut go = |node| {
            visit(node);
            last = node;
        };
        match self.pattern {
            Pattern::RandomLine | Pattern::LinePerPage => {
                self.shuffle.after(index).take(steps as usize).for_each(&mut go);
            }
            Pattern::Stride(_) | Pattern::PageRandom => {
                let mut node = index;
                for _ in 0..steps {
                    node = self.successor(node);
                    go(node);
                }
            }
        }
        last
    }

    /// The node after `index`.
    pub fn successor(&self, index: u64) -> u64 {
        match self.pattern {
            Pattern::RandomLine | Pattern::LinePerPage => self.shuffle.successor(index),
            Pattern::Stride(_) => (index + 1) % self.nodes,
            Pattern::PageRandom => self.successor_in_page(index),
        }
    }

    /// Within a page every line once, in an order that differs from page to page; then the first line of the next page.
    fn successor_in_page(&self, index: u64) -> u64 {
        let page = index / LINES_PER_PAGE;
        let flip = self.scatter(page);
        let line = (index % LINES_PER_PAGE) ^ flip;
        let first = self.shuffle.element(0);
        let next = self.shuffle.successor(line);
        if next != first {
            return page * LINES_PER_PAGE + (next ^ flip);
        }
        let next_page = (page + 1) % (self.nodes / LINES_PER_PAGE);
        next_page * LINES_PER_PAGE + (first ^ self.scatter(next_page))
    }

    fn scatter(&self, page: u64) -> u64 {
        let mut state = self.seed ^ page;
        splitmix(&mut state) % LINES_PER_PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::Order;
    use model::Bytes;
    use model::latency::Pattern;
    use proptest::prelude::*;

    fn patterns() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            Just(Pattern::RandomLine),
            Just(Pattern::LinePerPage),
            Just(Pattern::PageRandom),
            (1u64..100).prop_map(|lines| Pattern::Stride(Bytes(64 * lines)))
        ]
    }

    proptest! {
        #[test]
        fn every_tour_is_closed_and_visits_each_node_once_inside_the_working_set(pattern in patterns(), kib in 4u64..400, seed: u64, start in 0u64..3) {
            let bytes = Bytes::kib(kib);
            let Some(order) = Order::new(pattern, bytes, seed) else { return Ok(()) };
            let start = Bytes::kib(4 * start);
            let order = order.beginning_at(start);
            let mut seen = vec![false; order.nodes() as usize];
            let mut at = 0;
            let mut followed = Vec::new();
            let last = order.follow(0, order.nodes(), |node| followed.push(node));
            prop_assert_eq!(last, 0);
            for next in followed {
                prop_assert!((start.0..=start.0 + bytes.0 - 8).contains(&order.offset(at)));
                prop_assert_eq!(order.index(order.offset(at)), at);
                prop_assert!(!std::mem::replace(&mut seen[at as usize], true));
                at = order.successor(at);
                prop_assert_eq!(at, next);
            }
            prop_assert_eq!(at, 0);
        }
    }

    #[test]
    fn page_random_stays_in_a_page_until_all_its_lines_are_seen() {
        let order = Order::new(Pattern::PageRandom, Bytes::kib(64), 3).expect("large enough");
        let mut at = order.successor_in_page(0);
        // Go to the start of a page first.
        while at / 64 == 0 {
            at = order.successor(at);
        }
        for page in 1..16 {
            for _ in 0..64 {
                assert_eq!(at / 64, page);
                at = order.successor(at);
            }
        }
    }

    #[test]
    fn a_working_set_of_one_node_has_no_tour() {
        assert!(Order::new(Pattern::LinePerPage, Bytes::kib(4), 1).is_none());
        assert!(Order::new(Pattern::RandomLine, Bytes(64), 1).is_none());
    }
}
