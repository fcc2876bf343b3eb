//! Random loads, a pointer chase, and steps of one length.

use model::Bytes;

use crate::access::Access;
use crate::engine::BLOCK;
use crate::random::{Chance, Permutation};

/// Bytes of a line, which a ring has one element in.
const LINE: u64 = 64;

#[derive(Clone, Debug)]
pub(super) struct Random {
    words: u64,
    chance: Chance,
}

impl Random {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        Self {
            words: size.0 / 8,
            chance: Chance::new(seed),
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        block.extend((0..BLOCK).map(|_| Access::load(self.chance.below(self.words) * 8)));
    }
}

#[derive(Clone, Debug)]
pub(super) struct Chase {
    lines: u64,
    order: Permutation,
    at: u64,
}

impl Chase {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        let lines = size.0 / LINE;
        Self {
            lines,
            order: Permutation::new(lines, seed),
            at: 0,
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        for _ in 0..BLOCK {
            block.push(Access::load(self.order.at(self.at) * LINE));
            self.at = if self.at + 1 == self.lines { 0 } else { self.at + 1 };
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Steps {
    size: u64,
    step: u64,
    at: u64,
}

impl Steps {
    pub(super) fn new(size: Bytes, step: u64) -> Self {
        Self {
            size: size.0,
            step,
            at: 0,
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        for _ in 0..BLOCK {
            block.push(Access::load(self.at));
            self.at += self.step;
            if self.at >= self.size {
                self.at -= self.size;
            }
        }
    }
}
