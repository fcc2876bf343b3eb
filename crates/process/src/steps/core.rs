//! How long the instructions of a window take on an out-of-order core if all loads hit the first-level cache, and how many of its waits for memory overlap.

use super::branches::Branches;
use super::operands::{Next, Touch};
use super::recent::Recent;
use super::timeline::{Access, NARROW, SLOW, Slow, Timeline, WIDE};

/// Time of a window's instructions on two cores that differ as server cores of the last years do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// On a recent core: six instructions a cycle, 512 in flight.
    pub wide: Cycles,
    /// On a core of about 2017: four instructions a cycle, 224 in flight.
    pub narrow: Cycles,
    /// Branches that were mispredicted. One that was not seen before is not counted.
    pub mispredicted: u64,
    /// Loads from lines that were not accessed lately.
    pub lines: u64,
    /// Loads and stores to pages that were not accessed lately.
    pub pages: u64,
}

/// Core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// With the mispredicted branches.
    pub all: u64,
    /// If no branch is mispredicted.
    pub predicted: u64,
    /// If all loads from lines that were not accessed lately are slow.
    pub slow_lines: u64,
    /// If all accesses to pages that were not accessed lately are slow.
    pub slow_pages: u64,
}

impl Cycles {
    /// How many of so many waits overlap; one if there are none.
    fn overlap(self, slow: u64, waits: u64) -> f64 {
        /// Line fill buffers of recent cores.
        const MOST: f64 = 16.0;
        let waits = (waits * SLOW) as f64;
        let waited = slow.saturating_sub(self.all) as f64;
        (waits / waited.max(1.0)).clamp(1.0, MOST)
    }
}

impl Core {
    /// What these instructions may take on a core: least, in the middle, most. The ends lie beyond both cores for what the model lacks: instruction caches, execution
    /// ports, how well branches are predicted. On one CPU 14 programs were between them (`benches/results/predict-xeon-guest.md`).
    pub fn cycles(&self) -> [f64; 3] {
        let least = 0.9 * (self.wide.all + self.wide.predicted) as f64 / 2.0;
        let middle = (self.wide.all + self.narrow.all) as f64 / 2.0;
        [least, middle, 1.25 * self.narrow.all as f64]
    }

    /// How many waits for lines overlap on the narrow core, and on the wide one.
    pub fn overlap_of_lines(&self) -> [f64; 2] {
        [self.narrow, self.wide].map(|cycles| cycles.overlap(cycles.slow_lines, self.lines))
    }

    /// Likewise of waits for the translation of pages.
    pub fn overlap_of_pages(&self) -> [f64; 2] {
        [self.narrow, self.wide].map(|cycles| cycles.overlap(cycles.slow_pages, self.pages))
    }
}

/// What earlier windows of a program leave behind in a core.
#[derive(Clone, Debug)]
pub struct Learned {
    branches: Branches,
    lines: Recent,
    pages: Recent,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            branches: Branches::default(),
            lines: Recent::lines(),
            pages: Recent::pages(),
        }
    }
}

/// The cores, while a window runs.
pub(super) struct Cores<'a> {
    /// By what is slow, on both cores.
    flushed: [[Timeline; 2]; 3],
    predicted: [Timeline; 2],
    learned: &'a mut Learned,
    counted: Core,
    accesses: Vec<Access>,
    /// The address behind the last instruction.
    behind: u64,
}

impl<'a> Cores<'a> {
    pub(super) fn new(learned: &'a mut Learned) -> Self {
        learned.branches.begin();
        let both = |slow| [WIDE, NARROW].map(|shape| Timeline::new(shape, slow));
        Self {
            flushed: [Slow::Nothing, Slow::Lines, Slow::Pages].map(both),
            predicted: both(Slow::Nothing),
            learned,
            counted: Core::default(),
            accesses: Vec::new(),
            behind: 0,
        }
    }

    /// The instruction at an address, which is the next one in program order, with its accesses.
    pub(super) fn take(&mut self, at: u64, next: &Next, touched: &[Touch]) {
        if self.learned.branches.went(at) {
            self.counted.mispredicted += 1;
            self.flushed.iter_mut().flatten().for_each(Timeline::flush);
        }
        self.look(touched);
        if !next.is_another {
            // Further rounds of a string instruction are never slow.
            let count = |is_it: fn(&Access) -> bool| self.accesses.iter().filter(|access| is_it(access)).count() as u64;
            self.counted.lines += count(|access| access.is_new_line);
            self.counted.pages += count(|access| access.is_new_page);
        }
        for timeline in self.flushed.iter_mut().flatten().chain(&mut self.predicted) {
            if next.is_another {
                timeline.repeat(&next.flow, &self.accesses);
            } else {
                timeline.fetch(at, at == self.behind);
                timeline.take(&next.flow, &self.accesses);
            }
        }
        self.behind = next.behind;
        self.learned.branches.runs(at, next.behind, next.flow.branch);
    }

    /// Which accesses may be slow?
    fn look(&mut self, touched: &[Touch]) {
        self.accesses.clear();
        for &Touch { address, is_store } in touched {
            let access = Access {
                address,
                is_store,
                is_new_line: self.learned.lines.is_new(address) && !is_store,
                is_new_page: self.learned.pages.is_new(address),
            };
            self.accesses.push(access);
        }
    }

    pub(super) fn so_far(&self) -> Core {
        let [all, slow_lines, slow_pages] = self
            .flushed
            .each_ref()
            .map(|both| both.each_ref().map(Timeline::cycles));
        let cycles = |place: usize| Cycles {
            all: all[place],
            predicted: self.predicted[place].cycles(),
            slow_lines: slow_lines[place],
            slow_pages: slow_pages[place],
        };
        Core {
            wide: cycles(0),
            narrow: cycles(1),
            ..self.counted
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
