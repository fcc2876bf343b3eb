//! The orders in which the measured programs visit their elements.

use std::convert::Infallible;

use translation::random::Permutation;
use translation::{Access, Accesses, BLOCK, Event};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Windows in a row, elements in random order within each.
    Windows,
    /// Elements in random order over all.
    Random,
}

/// Bytes of a window. The logs do not say it; both orders cost the same up to this working set, and differ from the next one on.
pub(crate) const WINDOW: u64 = 2 << 20;

/// A ring through all elements, over and over in the same order.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    working_set: u64,
    window: u64,
    apart: u64,
    /// The window that is visited: where it begins, its order, and how far that is done.
    begin: u64,
    order: Permutation,
    at: u64,
    left: u64,
}

impl Elements {
    pub(super) fn new(order: Order, working_set: u64, apart: u64) -> Self {
        let window = match order {
            Order::Windows => WINDOW.min(working_set),
            Order::Random => working_set,
        };
        let mut elements = Self {
            working_set,
            window,
            apart,
            begin: 0,
            order: Permutation::new(1, 0),
            at: 0,
            left: 0,
        };
        elements.enter(0);
        elements
    }

    pub(super) fn count(&self) -> u64 {
        (self.working_set / self.apart).max(1)
    }

    /// Elements of a whole window; of random order over all, one: any stretch is like another.
    pub(super) fn in_window(&self) -> u64 {
        match self.window == self.working_set {
            true => 1,
            false => (self.window / self.apart).max(1),
        }
    }

    fn enter(&mut self, begin: u64) {
        self.begin = if begin >= self.working_set { 0 } else { begin };
        let bytes = self.window.min(self.working_set - self.begin);
        self.left = (bytes / self.apart).max(1);
        // A window is visited in the same order in each lap.
        self.order = Permutation::new(self.left, 1 + self.begin);
        self.at = 0;
    }
}

impl Accesses for Elements {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
        for _ in 0..BLOCK {
            if self.left == 0 {
                self.enter(self.begin + self.window);
            }
            block.push(Access::load(self.begin + self.order.at(self.at) * self.apart));
            self.at += 1;
            self.left -= 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Accesses, Elements, Order, WINDOW};

    fn lap(order: Order, working_set: u64, apart: u64) -> Vec<u64> {
        let mut elements = Elements::new(order, working_set, apart);
        let (count, mut block) = (elements.count() as usize, Vec::new());
        while block.len() < count {
            elements.fill(&mut block).expect("one region");
        }
        block[..count].iter().map(|access| access.address()).collect()
    }

    #[test]
    fn a_lap_visits_every_element_once() {
        for (order, working_set, apart) in [
            (Order::Random, 1 << 16, 8),
            (Order::Windows, 3 * WINDOW, 64),
            (Order::Windows, WINDOW + WINDOW / 2, 4096),
            (Order::Windows, 6 << 10, 512),
        ] {
            let visited: BTreeSet<u64> = lap(order, working_set, apart).into_iter().collect();
            let expected: BTreeSet<u64> = (0..working_set / apart).map(|element| element * apart).collect();
            assert_eq!(visited, expected, "{order:?} {working_set} {apart}");
        }
    }

    #[test]
    fn windows_come_one_after_the_other_and_in_disorder() {
        let visited = lap(Order::Windows, 3 * WINDOW, 1024);
        assert!(visited.windows(2).all(|pair| pair[0] / WINDOW <= pair[1] / WINDOW));
        let rises = visited.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((visited.len() / 3..visited.len() * 2 / 3).contains(&rises), "{rises}");
    }
}
