//! Reuse distances: how many other pages were accessed since the same page was accessed before.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use super::random::mixed;

/// The pages accessed so far, each at the moment of its last access.
#[derive(Clone, Debug, Default)]
pub(super) struct Reuse {
    moments: HashMap<u64, u32, Mixing>,
    /// A Fenwick tree over moments: one for each that is the last access of a page.
    tree: Vec<u32>,
    /// The next moment. At the end of the tree, moments without a page are left out.
    now: u32,
}

/// Moments that a tree has at least.
const LEAST: usize = 1024;

impl Reuse {
    /// The distance of an access to a page, if that was accessed before; all others since then are counted once.
    pub(super) fn access(&mut self, page: u64) -> Option<u32> {
        if self.now as usize == self.tree.len() {
            self.renumber();
        }
        let before = self.moments.insert(page, self.now);
        let distance = before.map(|before| self.moments.len() as u32 - self.until(before));
        if let Some(before) = before {
            self.add(before, u32::MAX);
        }
        self.add(self.now, 1);
        self.now += 1;
        distance
    }

    /// Forgets a page.
    pub(super) fn forget(&mut self, page: u64) {
        if let Some(moment) = self.moments.remove(&page) {
            self.add(moment, u32::MAX);
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.moments.len()
    }

    /// Pages whose last access was at a moment or before.
    fn until(&self, moment: u32) -> u32 {
        let (mut at, mut sum) = (moment as usize + 1, 0_u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at - 1]);
            at &= at - 1;
        }
        sum
    }

    /// Adds to a moment; `u32::MAX` takes one away.
    fn add(&mut self, moment: u32, count: u32) {
        let mut at = moment as usize + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] = self.tree[at - 1].wrapping_add(count);
            at += at & at.wrapping_neg();
        }
    }

    /// Gives the pages new moments in the same order, without those in between, and room for as many more.
    fn renumber(&mut self) {
        let mut order: Vec<&mut u32> = self.moments.values_mut().collect();
        order.sort_unstable();
        let pages = order.len();
        (0..).zip(order).for_each(|(moment, held)| *held = moment);
        self.now = pages as u32;
        self.tree.clear();
        self.tree.resize((4 * pages).max(LEAST), 0);
        self.tree[..pages].fill(1);
        for at in 1..=self.tree.len() {
            let next = at + (at & at.wrapping_neg());
            if next <= self.tree.len() {
                self.tree[next - 1] = self.tree[next - 1].wrapping_add(self.tree[at - 1]);
            }
        }
    }
}

/// Page numbers need no hash that withstands an attacker.
#[derive(Clone, Copy, Debug, Default)]
struct Mixing(u64);

impl BuildHasher for Mixing {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        mixed(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(8) ^ word;
    }
}
