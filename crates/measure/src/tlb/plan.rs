//! Which probes to ask: a first sweep over pages and layouts, then whatever separates rival shapes.

use std::collections::BTreeMap;

use super::fit::{Eviction, Fit, Row, Shape, Shares};
use super::occupancy::{Histogram, capacities, fill};
use super::probe::{Layout, Limits, Probe, Sweep};
use crate::distinct;

/// Strides of the first-level sweep, as powers of two of pages: enough for 128 sets.
const NEAR_STRIDES: u32 = 8;
/// Strides of the second-level sweep: one more than the sets of any known TLB need, short of the next page-table level.
const FAR_STRIDES: u32 = 10;
/// Blocks, as powers of two of pages: they keep more pages than the first level holds in few sets of the second.
const FAR_BLOCKS: [u32; 2] = [3, 5];
/// Random draws of pages. By luck one of five spreads as many pages as there are entries evenly over two sets of eight; it takes
/// a dozen to leave no warning. Where there are many sets, no draw is ever that lucky.
const NEAR_DRAWS: u32 = 12;
const FAR_DRAWS: u32 = 4;
/// Those of them that the first look goes through at many numbers of pages.
const SWEPT: u32 = 2;
/// Base-2 logarithms of the pages that are drawn from. Second levels that hold page directories too must hold few of them.
const NEAR_RANGE: u32 = 15;
const FAR_RANGE: u32 = 14;
/// Layouts of those that use most entries in which contention is looked for.
const WIDE: usize = 5;
/// The least part of all entries that such a layout uses, as a divisor.
pub(super) const SHARE: u32 = 16;

/// Every number up to 16, then steps of about `step`.
fn grid(from: u32, to: u32, step: f64) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(from.max(1)), move |&pages| {
        Some((pages + 1).max((f64::from(pages) * step) as u32))
    })
    .take_while(move |&pages| pages <= to)
}

/// Few pages, at strides that use fewer and fewer sets.
pub(super) fn near_probes(limits: Limits) -> Vec<Probe> {
    let step = |layout| if layout == Layout::DENSE { 1.06 } else { 1.1 };
    layouts(Sweep::Near, limits)
        .filter(|layout| layout.draw <= SWEPT)
        .flat_map(|layout| probes(Sweep::Near, layout, limits, grid(1, limits.pages, step(layout))))
        .collect()
}

/// Many neighbouring pages, from `start` on.
pub(super) fn far_dense(limits: Limits, start: u32) -> Vec<Probe> {
    probes(Sweep::Far, Layout::DENSE, limits, grid(start, limits.pages, 1.07))
}

/// Pages from `start` to `most`, at strides and in blocks that use fewer and fewer sets.
pub(super) fn far_strided(limits: Limits, start: u32, most: u32) -> Vec<Probe> {
    layouts(Sweep::Far, limits)
        .filter(|&layout| layout != Layout::DENSE && layout.draw <= SWEPT)
        .flat_map(|layout| probes(Sweep::Far, layout, limits, grid(start, most, 1.16)))
        .collect()
}

/// Pages that a sweep visits at the most, whatever it asks.
pub(super) fn visited(sweep: Sweep, limits: Limits) -> u64 {
    let each = u64::from(limits.pages);
    limits.span.min(layouts(sweep, limits).count() as u64 * each)
}

fn layouts(sweep: Sweep, limits: Limits) -> impl Iterator<Item = Layout> {
    let (strides, blocks) = match sweep {
        Sweep::Near => (NEAR_STRIDES, &[][..]),
        Sweep::Far => (FAR_STRIDES, &FAR_BLOCKS[..]),
    };
    let blocks = blocks.iter().flat_map(move |&block| {
        let strides = block + 2..strides;
        strides.map(move |stride| Layout {
            block,
            ..Layout::strided(stride)
        })
    });
    let plain = (0..strides).map(Layout::strided).chain(blocks);
    plain.chain(draws(sweep, limits))
}

/// Random sets of pages.
pub(super) fn draws(sweep: Sweep, limits: Limits) -> impl Iterator<Item = Layout> {
    let (range, draws) = match sweep {
        Sweep::Near => (NEAR_RANGE, NEAR_DRAWS),
        Sweep::Far => (FAR_RANGE, FAR_DRAWS),
    };
    let range = limits.span.ilog2().min(range);
    (1..=draws).map(move |draw| Layout::drawn(range, draw))
}

/// As many random pages as just fit, and the fewest more of which a good part must miss.
pub(super) fn drawn_edges(sweep: Sweep, shape: Shape, layout: Layout, limits: Limits) -> impl Iterator<Item = Probe> {
    /// The share that neither a clock nor a gentle replacement hides.
    const GOOD: f64 = 0.15;
    let edge = shape.capacity(layout, limits.pages);
    let more = [1, edge / 16 + 1, edge / 4 + 1, edge / 2 + 1].map(|more| edge + more);
    let least = shape.shares(Eviction::Any, layout, more.into_iter());
    let over = more.into_iter().zip(least).find(|(_, shares)| shares.least > GOOD);
    [edge]
        .into_iter()
        .chain(over.map(|(pages, _)| pages))
        .filter(move |&pages| limits.allow(layout, pages))
        .map(move |pages| Probe { sweep, layout, pages })
}

fn probes(sweep: Sweep, layout: Layout, limits: Limits, pages: impl Iterator<Item = u32>) -> Vec<Probe> {
    pages
        .filter(|&pages| limits.allow(layout, pages))
        .map(|pages| Probe { sweep, layout, pages })
        .collect()
}

/// For one rival the probe that separates it best, and the runner-up at another layout: one layout alone may be disturbed.
type Best = [(f64, Option<Probe>); 2];

/// Probes that the best shape and its rivals, or shapes easily taken for it, answer most differently.
pub(super) fn telling(sweep: Sweep, fit: &Fit, limits: Limits, start: u32) -> Vec<Probe> {
    let rivals = representatives(fit);
    let mut best: Vec<Best> = vec![[(0.0, None); 2]; rivals.len()];
    for layout in layouts(sweep, limits) {
        let pages = borders(layout, fit.shape, &rivals, limits, start);
        let own = fit.shape.shares(fit.eviction, layout, pages.iter().copied());
        let mut best = best.iter_mut();
        for alike in rivals.chunk_by(|a, b| a.row() == b.row()) {
            let (sets, hash) = alike[0].row();
            let filled = fill(layout, sets, hash, pages.iter().copied());
            for (rival, best) in alike.iter().zip(&mut best) {
                let told = |((&pages, own), filled): ((&u32, &Shares), &Histogram)| {
                    let theirs = fit.eviction.shares(filled, rival.ways);
                    let clear = own.apart(theirs) / (0.01 + 0.06 * own.least.max(theirs.least));
                    (clear, Some(Probe { sweep, layout, pages }))
                };
                let told = pages.iter().zip(&own).zip(&filled).map(told);
                keep(best, told.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, None)));
            }
        }
    }
    distinct(best.into_iter().flatten().filter_map(|(_, probe)| probe))
}

fn keep(best: &mut Best, new: (f64, Option<Probe>)) {
    // Where two separate as well, few pages are sooner asked and sooner in their places.
    let pages = |told: (f64, Option<Probe>)| told.1.map_or(u32::MAX, |probe| probe.pages);
    let better = |new: (f64, Option<Probe>), old: (f64, Option<Probe>)| {
        new.0 > 1.01 * old.0 || new.0 > 0.99 * old.0 && pages(new) < pages(old)
    };
    if better(new, best[0]) {
        *best = [new, best[0]];
    } else if better(new, best[1]) {
        best[1] = new;
    }
}

/// What just fits, what fits easily and what does not in layouts that use most of the entries: whether the one fits about as often as the other
/// shows if contention ever paused.
pub(super) fn edges(sweep: Sweep, shape: Shape, limits: Limits, start: u32) -> Vec<Probe> {
    let wide = |layout: &Layout| SHARE * shape.capacity(*layout, limits.pages) >= shape.entries();
    let (drawn, plain): (Vec<Layout>, Vec<Layout>) = layouts(sweep, limits)
        .filter(wide)
        .partition(|layout| layout.is_drawn());
    let both = plain.into_iter().take(WIDE).chain(drawn).flat_map(|layout| {
        let edge = shape.capacity(layout, limits.pages);
        [short_of(edge), edge, beyond(edge)].map(|pages| Probe { sweep, layout, pages })
    });
    let refuting = draws(sweep, limits).flat_map(|layout| drawn_edges(sweep, shape, layout, limits));
    let both = both.filter(|probe| limits.allow(probe.layout, probe.pages));
    both.chain(refuting).filter(|probe| probe.pages >= start).collect()
}

/// A few pages less than those that just fit.
pub(super) fn short_of(edge: u32) -> u32 {
    edge - edge / 16 - 1
}

/// A few pages more than those that just fit.
pub(super) fn beyond(edge: u32) -> u32 {
    edge + edge / 16 + 1
}

/// Where a layout may separate shapes: at the edge of each and some way beyond it.
fn borders(layout: Layout, shape: Shape, rivals: &[Shape], limits: Limits, start: u32) -> Vec<u32> {
    let rows = rivals.chunk_by(|a, b| a.row() == b.row());
    let fitting = rows.flat_map(|alike| {
        let (sets, hash) = alike[0].row();
        capacities(layout, sets, hash, alike.iter().map(|rival| rival.ways), limits.pages)
    });
    let pages = fitting
        .chain([shape.capacity(layout, limits.pages)])
        .flat_map(|fit| [fit, fit + 1, fit + 1 + fit / 16, fit + 1 + fit / 4])
        .filter(|&pages| pages >= start && limits.allow(layout, pages));
    distinct(pages)
}

/// A few rivals that stand for all, by row and ways: of each row the extremes and what lies evenly between them, and kin.
fn representatives(fit: &Fit) -> Vec<Shape> {
    const EACH: usize = 6;
    let mut rows: BTreeMap<Row, Vec<Shape>> = BTreeMap::new();
    for &rival in &fit.rivals {
        rows.entry(rival.row()).or_default().push(rival);
    }
    let few = rows.into_values().flat_map(|mut row| {
        row.sort_unstable();
        let last = row.len() - 1;
        (0..EACH).map(move |n| row[last * n / (EACH - 1)]).collect::<Vec<_>>()
    });
    let mut all: Vec<Shape> = few.chain(fit.shape.kin()).filter(|&rival| rival != fit.shape).collect();
    all.sort_unstable_by_key(|shape| (shape.row(), shape.ways));
    all.dedup();
    all
}
