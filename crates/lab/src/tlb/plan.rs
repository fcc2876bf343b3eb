//! Which probes to ask: pages and layouts that tell one geometry from another.

use model::tlb::Entries;

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
    (0..NEAR_STRIDES)
        .map(Layout::strided)
        .flat_map(|layout| probes(Sweep::Near, layout, limits, grid(1, limits.pages, 1.06)))
        .collect()
}

/// Many pages from `start` on, at strides and in blocks that use fewer and fewer sets.
pub(super) fn far_probes(limits: Limits, start: u32) -> Vec<Probe> {
    let strided = (1..FAR_STRIDES).map(Layout::strided);
    let blocks = FAR_BLOCKS
        .into_iter()
        .flat_map(|block| (block + 2..FAR_STRIDES).map(move |stride| Layout { stride, block }));
    let dense = probes(Sweep::Far, Layout::DENSE, limits, grid(start, limits.pages, 1.07));
    strided
        .chain(blocks)
        .flat_map(|layout| probes(Sweep::Far, layout, limits, grid(start, limits.pages * 2 / 3, 1.12)))
        .chain(dense)
        .collect()
}

fn probes(sweep: Sweep, layout: Layout, limits: Limits, pages: impl Iterator<Item = u32>) -> Vec<Probe> {
    pages
        .filter(|&pages| limits.allow(layout, pages))
        .map(|pages| Probe { sweep, layout, pages })
        .collect()
}

/// Points in and around the range of entries that is still open, at each stride scaled to where its knee would be if the
/// stride left so many sets unused, and at each as if it left none.
pub(super) fn closer(sweep: Sweep, entries: Entries, limits: Limits) -> Vec<Probe> {
    let mut all: Vec<Probe> = (0..NEAR_STRIDES)
        .flat_map(|stride| {
            let layout = Layout::strided(stride);
            let scaled = around(entries, stride);
            probes(sweep, layout, limits, scaled.chain(around(entries, 0)))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn around(entries: Entries, halvings: u32) -> impl Iterator<Item = u32> {
    const POINTS: u32 = 8;
    let low = (entries.low >> halvings).saturating_sub(2).max(1);
    let high = (entries.high >> halvings) + 3;
    let step = ((high - low) / POINTS).max(1);
    (low..=high).step_by(step as usize)
}
