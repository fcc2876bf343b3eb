//! Where the frames of a guest's base pages lie in its memory.
//!
//! An operating system that has run for a while has free memory in pieces, and gives base pages frames that do not follow each other. Then each has its own line
//! of the host's page table, where eight in order share one.

use std::collections::HashMap;

use model::Bytes;
use model::latency::{Frames, RUN_LENGTHS};

use crate::random::{Permutation, mixed};

/// Address bits of a base page, and of the range within which runs have one length.
const BASE: u32 = 12;
const RANGE: u32 = BASE + RUN_LENGTHS as u32 - 1;
/// Which numbers a range draws from.
const DRAWS: u64 = 1 << 16;

/// Frames in runs, by chance anywhere in a part of the guest's memory.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// By length of runs, a power of two: the draws below which a range of 2 MiB has runs of at most that length.
    up_to: [u64; RUN_LENGTHS],
    /// Ranges that were measured. Short runs are used up first, as the kernel's allocator does; else ranges are long or short by chance.
    measured: Option<u64>,
    /// By length of runs: the order in which they lie.
    orders: [Permutation; RUN_LENGTHS],
    spread: Bytes,
}

impl PartialEq for Scatter {
    fn eq(&self, other: &Self) -> bool {
        (self.up_to, self.measured, self.spread) == (other.up_to, other.measured, other.spread)
    }
}

impl Eq for Scatter {}

impl Scatter {
    pub fn of(frames: &Frames) -> Self {
        let all = frames.pages_by_run.into_iter().fold(0, u64::saturating_add);
        let shares = frames.pages_by_run.map(|pages| pages as f64 / all.max(1) as f64);
        let measured = Some(all.div_ceil(1 << (RANGE - BASE)).max(1));
        Self {
            measured,
            ..Self::with(shares, frames.spread)
        }
    }

    /// Runs of so many pages on average, from 1 to 512.
    pub fn even(run: f64, spread: Bytes) -> Self {
        let run = run.clamp(1.0, f64::from(1_u32 << (RUN_LENGTHS - 1)));
        let power = (run.log2() as usize).min(RUN_LENGTHS - 2);
        let shorter = f64::from(1_u32 << power);
        // As many runs for each page as asked for.
        let longer = 2.0 * (1.0 - shorter / run);
        let mut shares = [0.0; RUN_LENGTHS];
        (shares[power], shares[power + 1]) = (1.0 - longer, longer);
        Self::with(shares, spread)
    }

    fn with(shares: [f64; RUN_LENGTHS], spread: Bytes) -> Self {
        let mut sum = 0.0;
        let up_to = shares.map(|share| {
            sum += share;
            (sum * DRAWS as f64).round() as u64
        });
        let spread = Bytes(spread.0.clamp(1 << RANGE, 1 << 48).next_power_of_two());
        let orders = std::array::from_fn(|power| Permutation::new(spread.0 >> (BASE as usize + power), power as u64));
        Self {
            up_to,
            measured: None,
            orders,
            spread,
        }
    }

    /// Where a page lies: its address counted in the order in which ranges of 2 MiB are first used.
    #[inline]
    pub(crate) fn place(&self, address: u64) -> u64 {
        let range = address >> RANGE;
        let draw = match self.measured {
            Some(measured) => (range * DRAWS / measured).min(DRAWS - 1),
            None => mixed(range) % DRAWS,
        };
        let power = self.up_to.iter().position(|&up_to| draw < up_to);
        let power = power.unwrap_or(RUN_LENGTHS - 1);
        let bits = BASE + power as u32;
        let (part, within) = (address & !(self.spread.0 - 1), address & (self.spread.0 - 1));
        part | self.orders[power].at(within >> bits) << bits | within & ((1 << bits) - 1)
    }
}

/// Frames as a guest's kernel gives them out.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    scatter: Scatter,
    /// By range of 2 MiB: how many were used before it.
    order: HashMap<u64, u64>,
    latest: (u64, u64),
}

impl Given {
    pub(crate) fn new(scatter: Scatter) -> Self {
        Self {
            scatter,
            order: HashMap::new(),
            latest: (u64::MAX, 0),
        }
    }

    /// Where the page of an address lies.
    #[inline]
    pub(crate) fn place(&mut self, address: u64) -> u64 {
        let range = address >> RANGE;
        if self.latest.0 != range {
            let next = self.order.len() as u64;
            self.latest = (range, *self.order.entry(range).or_insert(next));
        }
        self.scatter
            .place(self.latest.1 << RANGE | address & ((1 << RANGE) - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Given, Scatter};
    use model::Bytes;
    use model::latency::Frames;

    fn frames(scatter: &Scatter, pages: u64) -> Vec<u64> {
        (0..pages).map(|page| scatter.place(page << 12) >> 12).collect()
    }

    #[test]
    fn what_is_scattered_as_measured_measures_as_it_was() {
        for run in [1.0, 1.5, 3.3, 8.0, 100.0, 512.0] {
            // So wide that hardly any run lies beside another by chance.
            let scatter = Scatter::even(run, Bytes::gib(1024));
            let found = Frames::of(frames(&scatter, 1 << 18)).expect("pages");
            let mean = found.mean_run();
            assert!((0.93..1.07).contains(&(mean / run)), "{run}: {mean}");
            let again = Frames::of(frames(&Scatter::of(&found), 1 << 18)).expect("pages");
            // Within the ranges that were measured some lie beside each other by chance.
            assert!((0.93..1.15).contains(&(again.mean_run() / mean)), "{run}: {again:?}");
            assert!(found.spread <= Bytes::gib(1024));
        }
    }

    #[test]
    fn short_runs_are_given_out_first_in_whatever_order_memory_is_used() {
        let measured = Frames {
            pages_by_run: [1024, 0, 0, 1024, 0, 0, 0, 0, 0, 2048],
            spread: Bytes::gib(1),
        };
        let mut given = Given::new(Scatter::of(&measured));
        let mut run = |address: u64| {
            let frames: Vec<u64> = (0..512).map(|page| given.place(address + (page << 12)) >> 12).collect();
            Frames::of(frames).expect("pages").mean_run()
        };
        let runs = [9_u64 << 40, 7 << 21, 5 << 21, 1 << 40, 3 << 30, 2 << 21].map(&mut run);
        assert!(runs[..2].iter().all(|&run| run < 1.1), "{runs:?}");
        assert!(runs[2..4].iter().all(|&run| (7.0..10.0).contains(&run)), "{runs:?}");
        assert!(runs[4..].iter().all(|&run| run > 500.0), "{runs:?}");
        assert!(run(7 << 21) < 1.1, "as before");
        assert!(
            (4 << 40..5 << 40).step_by(1 << 30).all(|more| run(more) > 500.0),
            "more than was measured"
        );
    }

    /// A trace may come from anyone, and its head may say anything.
    #[test]
    fn impossible_frames_have_a_place_too() {
        for (pages, spread) in [(u64::MAX, u64::MAX), (0, 0)] {
            let frames = Frames {
                pages_by_run: [pages; 10],
                spread: Bytes(spread),
            };
            let place = Scatter::of(&frames).place(5 << 26 | 0x123);
            assert_eq!(place & 0xfff, 0x123);
            assert!(frames.mean_run() >= 0.0);
        }
    }

    #[test]
    fn runs_of_one_length_share_no_frame_and_keep_the_place_in_a_page() {
        let scatter = Scatter::even(4.0, Bytes::mib(64));
        let all = frames(&scatter, 1 << 14);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|&frame| frame < 1 << 14));
        assert_eq!(scatter.place(5 << 26 | 0x123) & 0xfff, 0x123);
        assert_eq!(scatter.place(5 << 26 | 0x123) >> 26, 5);
    }
}
