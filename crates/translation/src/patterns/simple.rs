//! Addresses of random loads, of a pointer chase, and of steps of one length.

use crate::random::{Chance, Permutation};

/// Bytes of a line, which a ring has one element in.
const LINE: u64 = 64;

pub(super) fn random(size: u64, seed: u64) -> impl FnMut() -> u64 {
    let (words, mut chance) = (size / 8, Chance::new(seed));
    move || chance.below(words) * 8
}

pub(super) fn chase(size: u64, seed: u64) -> impl FnMut() -> u64 {
    let lines = size / LINE;
    let (order, mut places) = (Permutation::new(lines, seed), steps(lines, 1));
    move || order.at(places()) * LINE
}

pub(super) fn steps(size: u64, step: u64) -> impl FnMut() -> u64 {
    let mut next = 0;
    move || {
        let at = next;
        next = if at + step < size { at + step } else { at + step - size };
        at
    }
}
