//! What walks cost through huge guest pages, between two references on the very same lines: as if splintered, as if whole.
//!
//! Many lines are visited in turn, more than any TLB holds pages. Through huge guest pages that the host backs with huge pages, a few
//! page-directory entries translate all of them. Where the host's own tables map small pages there, each line needs a
//! page-table entry in a cache line of its own, just as if the guest had mapped it small; that is the first reference.
//! The second maps the same lines by small pages whose entries stand side by side.

use std::time::{Duration, Instant};

use model::Estimate;
use model::guest::GuestPage;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use vm::Window;

use super::ground::{LARGE, LINE, LINES, SMALL, place, plain, scattered, shuffled};
use super::visits::{Node, Visits};

/// Lines visited in each huge page: together beyond the entries of any known TLB, each with its own cache line of
/// page-table entries (8 to a line).
const PER_PAGE: u64 = 32;
/// Passes before the timed ones: the hypervisor fills in its tables.
const WARM: u64 = 2;
/// Passes between two looks at whether they suffice, and the most of them: some seconds under contention.
const BATCH: u64 = 40;
const PASSES: u64 = 6 * BATCH;
/// Where a pass takes so long that they are not all made in this time, those made must do.
const LONGEST: Duration = Duration::from_secs(8);
/// Fewer passes than this give no interval.
const FEWEST: usize = 12;
/// Disturbance only adds, and may be there more than half of the time: the cost that a quarter of the passes undercut.
const RANK: f64 = 0.25;
/// Resamplings of the passes for an interval, and the seed of their choice.
const RESAMPLED: usize = 400;
const SEED: u64 = 0x7a1c;
/// References that differ by less than this many cycles, or this share of the cheaper one, are no references.
const LEAST: f64 = 4.0;
const LEAST_SHARE: f64 = 0.05;

/// Core cycles of one access when more lines are visited in turn than any TLB holds pages, the same lines in three ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walks {
    pub(crate) lines: u64,
    /// Through huge guest pages.
    pub(crate) large: Estimate,
    /// Through small guest pages with page-table entries far apart: as if the huge ones were splintered.
    pub(crate) apart: Estimate,
    /// Through small guest pages with page-table entries side by side.
    pub(crate) row: Estimate,
    /// How far the first way is from the third towards the second, by the lower quartile of each: 0 as if whole, 1 as if
    /// splintered; `None` where the references do not differ clearly.
    pub(crate) share: Option<Estimate>,
}

/// How lines are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// Huge guest pages: what is in question.
    Large,
    /// Small guest pages where the large ones would have them: page-table entries far apart.
    Apart,
    /// Small guest pages in a row: page-table entries side by side.
    Row,
}

/// All ways, each with a window of its own.
pub(crate) const WAYS: [Through; 3] = [Through::Large, Through::Apart, Through::Row];

impl Through {
    /// Where its window begins.
    pub(crate) fn start(self) -> u64 {
        place(self as u64)
    }
}

/// Lines to visit in huge pages.
pub(crate) struct Course {
    pages: u64,
    lines: Vec<u64>,
}

impl Course {
    /// Scatters lines over huge pages.
    pub(crate) fn new(large_pages: u64) -> Self {
        let gap = LARGE / SMALL / PER_PAGE;
        let line = |number: u64| {
            let random = scattered(number);
            let small = number % PER_PAGE * gap + random % gap;
            number / PER_PAGE * LARGE + small * SMALL + (random >> 8) % LINES * LINE
        };
        Self {
            pages: large_pages,
            lines: (0..large_pages * PER_PAGE).map(line).collect(),
        }
    }

    /// How many lines.
    pub(crate) fn count(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(crate) fn windows(&self) -> Vec<Window> {
        let bytes = self.pages * LARGE;
        vec![
            plain(Through::Large as u64, GuestPage::Size2M, bytes),
            plain(Through::Apart as u64, GuestPage::Size4K, bytes),
            Window {
                virt: Through::Row.start(),
                page: GuestPage::Size4K,
                frames: self.lines.iter().map(|line| line / SMALL * SMALL).collect(),
            },
        ]
    }

    /// All lines, reached in one way, in an order that depends on the pass.
    pub(crate) fn nodes(&self, through: Through, pass: u64) -> Vec<Node> {
        let node = |number: usize| {
            let offset = self.lines[number];
            let within = match through {
                Through::Large | Through::Apart => offset,
                Through::Row => number as u64 * SMALL + offset % SMALL,
            };
            Node {
                virt: through.start() + within,
                offset,
            }
        };
        shuffled(self.lines.len(), pass).into_iter().map(node).collect()
    }

    /// Times the three ways by turns, the one that begins changing from pass to pass, until they suffice or are many.
    pub(crate) fn walk(&self, visits: &mut Visits<'_>, suffice: &dyn Fn(&Costs) -> bool) -> Result<Costs, vm::Error> {
        let mut costs = Costs::default();
        let begun = Instant::now();
        for pass in 0..WARM + PASSES {
            let turn = self.turn(visits, pass)?;
            if let ([Some(large), Some(apart), Some(row)], WARM..) = (turn, pass) {
                costs.passes.push([large, apart, row]);
            }
            let enough = begun.elapsed() > LONGEST || (pass % BATCH == BATCH - 1 && suffice(&costs));
            if enough {
                break;
            }
        }
        Ok(costs)
    }

    /// All three ways once.
    fn turn(&self, visits: &mut Visits<'_>, pass: u64) -> Result<[Option<f64>; WAYS.len()], vm::Error> {
        let mut turn = [None; WAYS.len()];
        for at in 0..WAYS.len() {
            let way = WAYS[(at + pass as usize) % WAYS.len()];
            turn[way as usize] = visits.cycles(&self.nodes(way, pass))?;
        }
        Ok(turn)
    }
}

/// Cycles of an access in the order of [`WAYS`], one entry for each undisturbed pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) passes: Vec<[f64; 3]>,
}

impl Costs {
    /// Medians, and where the first way stands between the others; `None` of no pass.
    pub(crate) fn judge(&self, lines: u64) -> Option<Walks> {
        let of =
            |way: Through| stats::estimate(&self.passes.iter().map(|pass| pass[way as usize]).collect::<Vec<f64>>());
        Some(Walks {
            lines,
            large: of(Through::Large)?,
            apart: of(Through::Apart)?,
            row: of(Through::Row)?,
            share: self.share(),
        })
    }

    /// The place between the references with its interval, from whole passes drawn again and again: within a pass
    /// contention is the same for all three.
    fn share(&self) -> Option<Estimate> {
        if self.passes.len() < FEWEST {
            return None;
        }
        let seen = Floors::of(&self.passes);
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(SEED);
        let mut draw = || -> Vec<[f64; 3]> {
            (0..self.passes.len())
                .filter_map(|_| self.passes.choose(&mut rng).copied())
                .collect()
        };
        let drawn: Vec<Floors> = (0..RESAMPLED).map(|_| Floors::of(&draw())).collect();
        let interval = |of: fn(&Floors) -> f64| {
            let all = stats::sorted(&drawn.iter().map(of).collect::<Vec<f64>>());
            Some((stats::quantile(&all, 0.025)?, stats::quantile(&all, 0.975)?))
        };
        let (contrast, _) = interval(Floors::contrast)?;
        let (low, high) = interval(Floors::share)?;
        (contrast >= LEAST.max(LEAST_SHARE * seen.0[Through::Row as usize])).then(|| Estimate {
            median: seen.share(),
            low,
            high,
            samples: self.passes.len() as u64,
        })
    }
}

/// What each way costs when least disturbed.
struct Floors([f64; WAYS.len()]);

impl Floors {
    fn of(passes: &[[f64; 3]]) -> Self {
        Self(WAYS.map(|way| {
            let costs: Vec<f64> = passes.iter().map(|pass| pass[way as usize]).collect();
            stats::quantile(&stats::sorted(&costs), RANK).unwrap_or(f64::NAN)
        }))
    }

    fn contrast(&self) -> f64 {
        self.0[Through::Apart as usize] - self.0[Through::Row as usize]
    }

    fn share(&self) -> f64 {
        (self.0[Through::Large as usize] - self.0[Through::Row as usize]) / self.contrast()
    }
}
