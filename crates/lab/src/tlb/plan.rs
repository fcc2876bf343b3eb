//! Which probes to ask: a first sweep over pages and layouts, then whatever tells rival shapes apart.

use std::collections::BTreeMap;

use model::tlb::Index;

use super::fit::{Fit, Shape};
use super::probe::{Layout, Limits, Probe, Sweep};

/// Strides of the first-level sweep, as powers of two of pages: enough for 128 sets.
const NEAR_STRIDES: u32 = 8;
/// Strides of the second-level sweep: one more than the sets of any known TLB need, short of the next page-table level.
const FAR_STRIDES: u32 = 10;
/// Blocks, as powers of two of pages: they keep more pages than the first level holds in few sets of the second.
const FAR_BLOCKS: [u32; 2] = [3, 5];

/// Every number up to 16, then steps of about `step`.
fn grid(from: u32, to: u32, step: f64) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(from.max(1)), move |&pages| {
        Some((pages + 1).max((f64::from(pages) * step) as u32))
    })
    .take_while(move |&pages| pages <= to)
}

/// Few pages, at strides that use fewer and fewer sets.
pub(super) fn near_probes(limits: Limits) -> Vec<Probe> {
    layouts(Sweep::Near)
        .flat_map(|layout| probes(Sweep::Near, layout, limits, grid(1, limits.pages, 1.06)))
        .collect()
}

/// Many pages from `start` on, at strides and in blocks that use fewer and fewer sets.
pub(super) fn far_probes(limits: Limits, start: u32) -> Vec<Probe> {
    layouts(Sweep::Far)
        .flat_map(|layout| {
            let (most, step) = if layout == Layout::DENSE {
                (limits.pages, 1.06)
            } else {
                (limits.pages * 2 / 3, 1.13)
            };
            probes(Sweep::Far, layout, limits, grid(start, most, step))
        })
        .collect()
}

fn layouts(sweep: Sweep) -> impl Iterator<Item = Layout> {
    let (strides, blocks) = match sweep {
        Sweep::Near => (NEAR_STRIDES, &[][..]),
        Sweep::Far => (FAR_STRIDES, &FAR_BLOCKS[..]),
    };
    let blocks = blocks
        .iter()
        .flat_map(move |&block| (block + 2..strides).map(move |stride| Layout { stride, block }));
    (0..strides).map(Layout::strided).chain(blocks)
}

fn probes(sweep: Sweep, layout: Layout, limits: Limits, pages: impl Iterator<Item = u32>) -> Vec<Probe> {
    pages
        .filter(|&pages| limits.allow(layout, pages))
        .map(|pages| Probe { sweep, layout, pages })
        .collect()
}

/// Probes that the best shape and its rivals, or shapes easily taken for it, answer most differently.
pub(super) fn telling(sweep: Sweep, fit: &Fit, limits: Limits, start: u32) -> Vec<Probe> {
    let rivals = representatives(fit);
    // For each rival the probe that tells it best, and the runner-up at another layout: one layout alone may be disturbed.
    let mut best: Vec<[(f64, Option<Probe>); 2]> = vec![[(0.0, None); 2]; rivals.len()];
    for layout in layouts(sweep) {
        let pages = edges(layout, fit.shape, &rivals, limits, start);
        let own = fit.shape.misses(layout, pages.iter().copied());
        for (rival, best) in rivals.iter().zip(&mut best) {
            let theirs = rival.misses(layout, pages.iter().copied());
            let told = |((&pages, own), theirs): ((&u32, &f64), &f64)| {
                let clear = (own - theirs).abs() / (0.01 + 0.06 * own.max(*theirs));
                (clear, Some(Probe { sweep, layout, pages }))
            };
            let clearest = pages
                .iter()
                .zip(&own)
                .zip(&theirs)
                .map(told)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            keep(best, clearest.unwrap_or((0.0, None)));
        }
    }
    let mut all: Vec<Probe> = best.into_iter().flatten().filter_map(|(_, probe)| probe).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn keep(best: &mut [(f64, Option<Probe>); 2], new: (f64, Option<Probe>)) {
    if new.0 > best[0].0 {
        *best = [new, best[0]];
    } else if new.0 > best[1].0 {
        best[1] = new;
    }
}

/// Where a layout may tell shapes apart: at the edge of each and some way beyond it.
fn edges(layout: Layout, shape: Shape, rivals: &[Shape], limits: Limits, start: u32) -> Vec<u32> {
    let mut pages: Vec<u32> = rivals
        .iter()
        .chain([&shape])
        .map(|shape| shape.capacity(layout, limits.pages))
        .flat_map(|fit| [fit, fit + 1, fit + 1 + fit / 16, fit + 1 + fit / 4])
        .filter(|&pages| pages >= start && limits.allow(layout, pages))
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// A few rivals that stand for all: of each number of sets and index the extremes and what lies evenly between them, and kin.
fn representatives(fit: &Fit) -> Vec<Shape> {
    const EACH: usize = 6;
    let mut rows: BTreeMap<(u32, Index), Vec<Shape>> = BTreeMap::new();
    for &rival in &fit.rivals {
        rows.entry((rival.sets, rival.index)).or_default().push(rival);
    }
    let few = rows.into_values().flat_map(|mut row| {
        row.sort_unstable();
        let last = row.len() - 1;
        (0..EACH).map(move |n| row[last * n / (EACH - 1)]).collect::<Vec<_>>()
    });
    let mut all: Vec<Shape> = few.chain(fit.shape.kin()).filter(|&rival| rival != fit.shape).collect();
    all.sort_unstable();
    all.dedup();
    all
}
