//! Reuse distances: how many other pages were accessed since the same page was accessed before.

pub(crate) mod shards;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::random::mixed;

/// The pages accessed so far, each at the moment of its last access.
#[derive(Clone, Debug, Default)]
pub(super) struct Reuse {
    moments: HashMap<u64, u32, BuildHasherDefault<Mixing>>,
    /// A bit for each moment that is the last access of a page.
    last: Vec<u64>,
    /// A Fenwick tree over the bits of each word; of the word of the next moment, nothing is in it yet.
    tree: Vec<u32>,
    /// The next moment. At the end of the bits, moments without a page are left out.
    now: usize,
}

/// Moments that there are at least.
const LEAST: usize = 1024;
const WORD: usize = u64::BITS as usize;

impl Reuse {
    /// The distance of an access to a page, if that was accessed before; all others since then are counted once.
    pub(super) fn access(&mut self, page: u64) -> Option<u32> {
        if self.now == self.last.len() * WORD {
            self.renumber();
        }
        let before = self.moments.insert(page, self.now as u32);
        let distance = before.map(|before| {
            let distance = self.moments.len() as u32 - self.until(before as usize);
            self.take_out(before as usize);
            distance
        });
        self.last[self.now / WORD] |= 1 << (self.now % WORD);
        self.now += 1;
        if self.now.is_multiple_of(WORD) {
            let word = self.now / WORD - 1;
            self.add(word, self.last[word].count_ones());
        }
        distance
    }

    pub(super) fn forget(&mut self, page: u64) {
        if let Some(moment) = self.moments.remove(&page) {
            self.take_out(moment as usize);
        }
    }

    /// Pages whose last access was at a moment or before.
    fn until(&self, moment: usize) -> u32 {
        let mut at = moment / WORD;
        let mut sum = (self.last[at] << (WORD - 1 - moment % WORD)).count_ones();
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at - 1]);
            at &= at - 1;
        }
        sum
    }

    fn take_out(&mut self, moment: usize) {
        let word = moment / WORD;
        self.last[word] ^= 1 << (moment % WORD);
        if word < self.now / WORD {
            self.add(word, u32::MAX);
        }
    }

    /// Adds to a word; `u32::MAX` takes one away.
    fn add(&mut self, word: usize, count: u32) {
        let mut at = word + 1;
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
        self.now = pages;
        let words = (4 * pages).max(LEAST).div_ceil(WORD);
        self.last.clear();
        self.last.resize(pages / WORD, u64::MAX);
        self.last.resize(words, 0);
        self.last[pages / WORD] = (1 << (pages % WORD)) - 1;
        self.tree.clear();
        self.tree.resize(words, 0);
        (0..pages / WORD).for_each(|word| self.add(word, u64::BITS));
    }
}

/// Page numbers need no hash that withstands an attacker.
#[derive(Clone, Copy, Debug, Default)]
struct Mixing(u64);

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
