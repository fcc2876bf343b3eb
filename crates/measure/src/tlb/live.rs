//! The machine itself as an oracle: spans of pages, aliased where the CPU allows it, timed in core cycles.

use std::io;

use chase::clock::CoreClock;
use chase::tlbwalk::{Behind, Flush, Proof, Span, Tour};
use model::tlb::{Memory, MemoryLayout};
use model::{Bytes, PageKind};
use stats::rounds;

use super::plan;
use super::probe::{Limits, Oracle, Probe, Sweep};

pub(super) const LINE: u64 = 64;
/// Bytes of a page table, and of an entry in it.
const TABLE: u64 = 4096;
const ENTRY: u64 = 8;
/// Lines within the smallest page: pages take them in turn, so that data spreads over all sets of the first-level cache.
pub(super) const LINES: u64 = 64;
/// Orders in which many pages are visited before they are timed in the last of them.
const ORDERS: u64 = 6;
/// More pages than any known first level holds.
const DEAR: u32 = 128;
/// Addresses that a list must hold.
const LIST: u64 = 1 << 19;
/// Pages in the first-level sweep: twice the entries of any known first level, and data for half a first-level cache.
const NEAR: Limits = Limits {
    pages: 256,
    span: 1 << 15,
};
/// Large private pages in the first-level sweep: 256 MiB.
const NEAR_LARGE: Limits = Limits { pages: 128, span: 128 };
/// Pages in the second-level sweep: twice the entries of any known second level.
const FAR: Limits = Limits {
    pages: 9000,
    span: 1 << 18,
};
/// The same for huge pages: each costs a page-table page although no memory is behind it.
const FAR_LARGE: Limits = Limits {
    pages: 6000,
    span: 1 << 13,
};
/// Aliases cost the same as one mapping up to this share: no way prediction in between.
const SAME: f64 = 0.08;
/// Aliases cost more by a constant if they differ by no more than this share among themselves. With more of them the
/// differences average out further; a second level that does not come out clearly is refused later.
const CONSTANT: f64 = 0.3;

/// The pages of one kind on this machine.
pub struct Live<'a> {
    clock: &'a CoreClock,
    /// The memory that it takes at the most.
    pub takes: Bytes,
    page: u64,
    near: Span,
    near_limits: Limits,
    far: Span,
    far_limits: Limits,
    dense: Span,
    list: Span,
    flush: Flush,
    /// How the pages lie, and what proves it.
    pub memory: Memory,
}

impl<'a> Live<'a> {
    /// Makes spans for a kind, of `room` at the most, and tests whether aliases can be trusted.
    ///
    /// # Errors
    /// If memory or address space is refused, a pool has no free page, or the pages cannot be proved to be of that kind.
    pub fn new(kind: PageKind, other: PageKind, clock: &'a CoreClock, room: Bytes) -> io::Result<Self> {
        let (large, page) = (kind.is_large(), kind.x86_size());
        let region = PageKind::Thp.x86_size().max(page);
        // On pages of the other size, or it would take entries from the pages that are counted.
        let bytes = Bytes(LIST * 8).round_up_to(other.x86_size());
        let aliases = if large { FAR_LARGE } else { FAR };
        let tables = tables(kind, aliases.span, plan::visited(Sweep::Far, aliases));
        let mut takes = Bytes(bytes.0 + tables.0);
        must_fit(takes, room)?;
        let mut aliased = Span::reserve(kind, aliases.span, Behind::OnePage)?;
        let mut list = Span::reserve(other, bytes.0 / other.x86_size().0, Behind::Private)?;
        let proof = proved(kind, &mut aliased, region, SAMPLED)?;
        let (layout, evidence) = self_test(&mut aliased, &mut list, clock);
        let near_limits = if large { NEAR_LARGE } else { NEAR };
        let [behind, far_behind] = behind(kind, layout);
        let far_limits = match (far_behind, large) {
            (Behind::Private, true) => NEAR_LARGE,
            _ => aliases,
        };
        takes.0 += own(kind, Sweep::Near, near_limits, behind) + own(kind, Sweep::Far, far_limits, far_behind);
        must_fit(takes, room)?;
        let mut near = Span::reserve(kind, near_limits.span, behind)?;
        proved(kind, &mut near, region, SAMPLED)?;
        Ok(Self {
            takes,
            clock,
            page: page.0,
            near,
            near_limits,
            far: if far_behind == Behind::OnePage {
                aliased
            } else {
                Span::reserve(kind, far_limits.span, far_behind)?
            },
            far_limits,
            dense: Span::reserve(PageKind::Base, u64::from(FAR.pages) / LINES + 1, Behind::Private)?,
            list,
            flush: Flush::new()?,
            memory: Memory {
                kind,
                layout,
                evidence: format!("{evidence}; {proof}"),
            },
        })
    }

    /// Were all visited pages of that kind to the end? Why not, else: the kernel may run out of huge pages, or split them.
    pub fn disproved(&self) -> Option<String> {
        [(&self.near, self.near_limits), (&self.far, self.far_limits)]
            .into_iter()
            .find_map(|(span, limits)| {
                // A kernel that has no such scan proved the pages in the beginning, by what was present.
                let share = span.large_share(Bytes(self.page * limits.span)).ok()?;
                denied(self.memory.kind, share).map(|why| format!("{why} when it ended"))
            })
    }

    fn visits(&self, probe: Probe, order: u64) -> Vec<u64> {
        let pages = rounds::order(probe.pages as usize, order, 0);
        let visit = |(turn, index): (u64, usize)| {
            // Where a way predictor takes two pages for one, other orders give them lines that do not meet.
            let line = if probe.layout.is_drawn() { turn } else { index as u64 };
            probe.layout.page(index as u32) * self.page + line % LINES * LINE
        };
        (0..).zip(pages).map(visit).collect()
    }

    /// What the data alone costs: as many lines, on as few pages as hold them, a page at a time.
    fn data(&mut self, lines: u32, pass: u32) -> Option<f64> {
        let offsets: Vec<u64> = rounds::order(lines as usize, pass.into(), 0)
            .into_iter()
            .map(|line| line as u64 * LINE)
            .collect();
        let mut by_page = offsets;
        by_page.sort_by_key(|offset| offset / (LINES * LINE));
        self.dense.ring(&by_page).cycles(self.clock)
    }
}

/// Page tables of a span of which so many pages are visited. For each transparent huge page the kernel keeps one more, for when it
/// splits the page.
pub(super) fn tables(kind: PageKind, span: u64, visited: u64) -> Bytes {
    let kept = if kind == PageKind::Thp { visited } else { 0 };
    Bytes(span * ENTRY + kept * TABLE)
}

/// Bytes that a sweep takes of memory that is of no pool.
fn own(kind: PageKind, sweep: Sweep, limits: Limits, behind: Behind) -> u64 {
    match behind {
        Behind::Private if kind.pool().is_none() => plan::visited(sweep, limits) * kind.x86_size().0,
        _ => 0,
    }
}

/// Refuses more memory than may be taken.
///
/// # Errors
/// With both amounts.
pub(super) fn must_fit(takes: Bytes, room: Bytes) -> io::Result<()> {
    if takes <= room {
        return Ok(());
    }
    let why = format!("that takes {takes} of memory, and {room} may be taken");
    Err(io::Error::new(io::ErrorKind::OutOfMemory, why))
}

/// What lies behind the pages of the near sweep and of the far one.
fn behind(kind: PageKind, layout: MemoryLayout) -> [Behind; 2] {
    let is_own = [
        layout != MemoryLayout::Aliased && kind.pool().is_none(),
        layout == MemoryLayout::Private,
    ];
    is_own.map(|is_own| if is_own { Behind::Private } else { Behind::OnePage })
}

/// Regions of a span that are looked at before it is used.
const SAMPLED: u64 = 4;
/// Memory whose pages are all of one kind has this share of it at least.
const ALL: f64 = 0.99;

/// Why so large a share of huge page-table entries does not prove this kind.
fn denied(kind: PageKind, large: f64) -> Option<String> {
    let percent = 100.0 * large;
    let is_denied = match kind.is_large() {
        true => large < ALL,
        false => large > 1.0 - ALL,
    };
    is_denied.then(|| format!("expected {kind} pages, got {percent:.0} % mapped by large entries"))
}

/// Proves that a span is made of pages of a kind, by some regions of it; in words.
///
/// # Errors
/// The reason why there is no proof.
pub(super) fn proved(kind: PageKind, span: &mut Span, region: Bytes, most: u64) -> io::Result<String> {
    let Some(Proof { share, by }) = span.prove(region, most)? else {
        return Err(io::Error::other("too little memory to prove its page size"));
    };
    match denied(kind, share) {
        Some(why) => Err(io::Error::other(format!("{why} (by {by})"))),
        None => Ok(format!("{:.0} % mapped by large entries (by {by})", 100.0 * share)),
    }
}

/// Does a chase over aliases of one line cost what it costs through one mapping? If more, by a constant?
fn self_test(span: &mut Span, list: &mut Span, clock: &CoreClock) -> (MemoryLayout, String) {
    let page = span.page().0;
    let mut cost = |offsets: &[u64]| {
        let costs = (0..40).filter_map(|_| span.listed(offsets, list).cycles(clock));
        costs.fold(f64::INFINITY, f64::min)
    };
    let one = cost(&[0; 16]);
    // With few aliases, or in order of address, a way predictor is sometimes lucky.
    let aliases = [16, 20, 24].map(|n: usize| {
        let order = rounds::order(n, n as u64, 0);
        cost(&order.into_iter().map(|at| at as u64 * page).collect::<Vec<u64>>())
    });
    let least = aliases.iter().copied().fold(f64::INFINITY, f64::min);
    let most = aliases.iter().copied().fold(0.0, f64::max);
    let text = format!("one mapping {one:.1} cycles, aliases {least:.1} to {most:.1}");
    if most <= one * (1.0 + SAME) {
        (MemoryLayout::Aliased, text)
    } else if most <= least * (1.0 + CONSTANT) {
        (
            MemoryLayout::AliasedAboveFirst,
            text + ": way prediction makes aliases more expensive by a constant",
        )
    } else {
        (MemoryLayout::Private, text + ": aliases cannot be used")
    }
}

impl Live<'_> {
    fn near(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        let visits = self.visits(probe, pass.into());
        let tour = if self.memory.layout == MemoryLayout::Aliased || self.memory.kind.pool().is_some() {
            self.near.listed(&first_lines(&visits, self.page), &mut self.list)
        } else {
            self.near.ring(&visits)
        };
        tour.cycles_from_empty(&self.flush, self.clock)
    }

    fn far(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        let first = u64::from(pass) * ORDERS;
        for order in first..first + ORDERS - 1 {
            self.far_tour(probe, order).stir();
        }
        let clock = self.clock;
        let tour = self.far_tour(probe, first + ORDERS - 1);
        // What misses the first level costs tens of cycles; a few pages that hit it say little here.
        let cost = if probe.pages < DEAR {
            tour.cycles(clock)
        } else {
            tour.cycles_of_dear_steps(clock)
        }?;
        if self.memory.layout == MemoryLayout::Private {
            return Some(cost - (self.data(probe.pages, pass)? - self.data(1, pass)?));
        }
        Some(cost)
    }

    fn far_tour(&mut self, probe: Probe, order: u64) -> Tour<'_> {
        let visits = self.visits(probe, order);
        if self.memory.layout == MemoryLayout::Private {
            return self.far.ring(&visits);
        }
        self.far.listed(&first_lines(&visits, self.page), &mut self.list)
    }
}

/// The first line of each page: on aliased pages all of these are one line.
fn first_lines(visits: &[u64], page: u64) -> Vec<u64> {
    visits.iter().map(|at| at / page * page).collect()
}

impl Oracle for Live<'_> {
    fn limits(&self, sweep: Sweep) -> Limits {
        match sweep {
            Sweep::Near => self.near_limits,
            Sweep::Far => self.far_limits,
        }
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        match probe.sweep {
            Sweep::Near => self.near(probe, pass),
            Sweep::Far => self.far(probe, pass),
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
