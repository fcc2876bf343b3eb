//! Where probes visit: windows of a guest onto one stretch of host memory, and the words of it that take part. Pure.

use model::guest::GuestPage;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use vm::Window;

pub(crate) const LINE: u64 = 64;
pub(crate) const SMALL: u64 = GuestPage::Size4K.size().0;
pub(crate) const LARGE: u64 = GuestPage::Size2M.size().0;
/// Lines of a small page: visits take them in turn, so that data spreads over all sets of the first-level cache.
pub(crate) const LINES: u64 = SMALL / LINE;

/// Windows begin here, each 256 GiB from the next: above what the guest has for itself, below where programs usually are.
const FIRST: u64 = 1 << 36;
const APART: u64 = 1 << 38;

/// The beginning of a window.
pub(crate) fn place(number: u64) -> u64 {
    FIRST + number * APART
}

/// Pages that lead to memory in order.
pub(crate) fn plain(number: u64, page: GuestPage, bytes: u64) -> Window {
    let size = page.size().0;
    Window {
        virt: place(number),
        page,
        frames: (0..bytes / size).map(|page| page * size).collect(),
    }
}

/// `0..n` in an order that depends on the seed.
pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut rand_pcg::Pcg64Mcg::seed_from_u64(seed));
    order
}

/// A number that looks random, the same for the same page at all strides (Fibonacci hashing, Knuth 6.4).
pub(crate) fn scattered(page: u64) -> u64 {
    page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
