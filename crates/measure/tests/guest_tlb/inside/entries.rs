//! Huge guest pages as regions for the detector by TLB entries: lines on one huge page against as many on small ones.

use super::ground::{LARGE, LINE, LINES, SMALL, shuffled};
use super::visits::{Node, Visits};
use super::walks::Through;
use measure::tlb::backing::{Area, Regions, Split, sample};

/// Huge pages sampled.
const SAMPLED: usize = 16;
/// Lines on each: beyond the first-level entries of any known CPU.
pub(crate) const LINES_EACH: u32 = 200;
pub(crate) const PASSES: u32 = 16;

/// The huge pages of a guest; the first error ends it.
struct InGuest<'a, 'm> {
    visits: &'a mut Visits<'m>,
    failed: Option<vm::Error>,
}

impl Regions for InGuest<'_, '_> {
    fn count(&self) -> usize {
        SAMPLED
    }

    fn cost(&mut self, area: Area, lines: u32, pass: u32) -> Option<f64> {
        if self.failed.is_some() {
            return None;
        }
        let cycles = self.visits.cycles(&nodes(area, lines, pass));
        cycles.map_err(|error| self.failed = Some(error)).ok().flatten()
    }
}

/// Samples huge pages; the windows are those of a [`super::walks::Course`] over at least as many.
pub(crate) fn split(visits: &mut Visits<'_>) -> Result<Split, vm::Error> {
    let mut regions = InGuest { visits, failed: None };
    let split = sample(&mut regions, LINES_EACH, PASSES, &|| false);
    regions.failed.map_or(Ok(split), Err)
}

/// Evenly over the whole page, so that no luck in one corner decides; or as densely as they can stand.
pub(crate) fn nodes(area: Area, lines: u32, pass: u32) -> Vec<Node> {
    let apart = (LARGE / SMALL / u64::from(lines)).max(1) * SMALL;
    let spread = |line: u64| line * apart + line % LINES * LINE;
    let node = |line: usize| {
        let line = line as u64;
        let (through, offset) = match area {
            Area::Small => (Through::Apart, spread(line)),
            Area::Dense => (Through::Apart, line * LINE),
            Area::Region(region) => (Through::Large, region as u64 * LARGE + spread(line)),
        };
        Node {
            virt: through.start() + offset,
            offset,
        }
    };
    shuffled(lines as usize, pass.into()).into_iter().map(node).collect()
}
