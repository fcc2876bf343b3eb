//! Pages drawn by Zipf's law without a table: rejection-inversion after Hormann and Derflinger (1996).

use crate::random::{Chance, Permutation};

/// The exponent that YCSB and its successors use.
const EXPONENT: f64 = 0.99;
const PAGE: u64 = 4096;

/// Ranks from 0, the most frequent first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

/// The integral of x^-s and its inverse. Powers are not those of the C library, whose last bits differ between machines.
fn integral(x: f64) -> f64 {
    (libm::pow(x, 1.0 - EXPONENT) - 1.0) / (1.0 - EXPONENT)
}

fn inverse(area: f64) -> f64 {
    to_the_100th((1.0 + area * (1.0 - EXPONENT)).max(0.0))
}

/// The power 1 / (1 - s).
fn to_the_100th(x: f64) -> f64 {
    let fourth = (x * x) * (x * x);
    let sixteenth = (fourth * fourth) * (fourth * fourth);
    let thirty_second = sixteenth * sixteenth;
    (thirty_second * thirty_second) * thirty_second * fourth
}

impl Zipf {
    pub(super) fn new(count: u64) -> Self {
        let count = count.max(1) as f64;
        Self {
            count,
            low: integral(1.5) - 1.0,
            high: integral(count + 0.5),
            shortcut: 2.0 - inverse(integral(2.5) - libm::pow(2.0, -EXPONENT)),
        }
    }

    pub(super) fn draw(&self, chance: &mut Chance) -> u64 {
        loop {
            let area = self.high + chance.unit() * (self.low - self.high);
            let x = inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.shortcut || area >= integral(rank + 0.5) - libm::pow(rank, -EXPONENT) {
                return rank as u64 - 1;
            }
        }
    }
}

/// Lines of pages that are drawn.
pub(super) fn lines(size: u64, seed: u64) -> impl FnMut() -> u64 {
    let (ranks, places) = (Zipf::new(size / PAGE), Permutation::new(size / PAGE, seed));
    let mut chance = Chance::new(seed);
    move || {
        let page = places.at(ranks.draw(&mut chance));
        page * PAGE + (chance.bits() & 63) * 64
    }
}
