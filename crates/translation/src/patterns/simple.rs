//! Addresses of random loads, of pointer chases, and of steps of one length.

use crate::random::{Chance, Permutation, mixed};

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

/// Steps down; a pass that is done is followed by one through the lines below, until all lines were there.
pub(super) fn down(size: u64, step: u64) -> impl FnMut() -> u64 {
    let (size, mut at) = (size / step * step, 0_u64);
    move || {
        at = match at.checked_sub(step) {
            Some(below) => below,
            None => size - step + (at + step - LINE) % step,
        };
        at
    }
}

/// Bytes of which one line is in use: a huge page.
const LARGE: u64 = 2 << 20;

/// A line on each huge page, on a base page of it that is drawn: few pages of either size, far apart.
pub(super) fn sparse(size: u64, seed: u64) -> impl FnMut() -> u64 {
    let (pages, lines) = ((size / LARGE).max(1), size.min(LARGE) / LINE);
    let (order, mut places) = (Permutation::new(pages, seed), steps(pages, 1));
    move || {
        let page = order.at(places());
        page * LARGE + mixed(seed ^ page) % lines * LINE
    }
}
