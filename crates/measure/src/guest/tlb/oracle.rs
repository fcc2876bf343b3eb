//! A guest as an oracle for TLB discovery: its own page tables make as many pages as wished out of little memory.

use model::Bytes;
use model::guest::GuestPage;
use vm::visits::Visits;
use vm::{Hypervisor, Memory, Window};

use super::ground::{LINES, folded, nodes, shuffled};
use crate::tlb::probe::{Limits, Oracle, Probe, Sweep};

/// Pages in the first-level sweep: twice the entries of any known first level, and data for half a first-level cache.
const NEAR: Limits = Limits {
    pages: 256,
    span: 1 << 15,
};
/// Pages in the second-level sweep: twice the entries of any known second level.
const FAR: Limits = Limits {
    pages: 9000,
    span: 1 << 18,
};
/// The same for large pages, within 16 GiB of addresses.
const FAR_LARGE: Limits = Limits {
    pages: 6000,
    span: 1 << 13,
};
/// Frames behind small pages: twice the lines of the largest probe, which still fit a second-level cache.
const FRAMES: u64 = 288;

/// Visits per first-level cache set in the second-level sweep: more than any known cache has ways, so that data always
/// comes from the second level, at a constant cost, however many pages are visited.
const CROWD: u64 = 16;

/// The pages that are probed.
pub(super) fn window(page: GuestPage, memory: Bytes) -> Window {
    match page {
        GuestPage::Size4K => folded(0, page, FAR.span, FRAMES),
        GuestPage::Size2M | GuestPage::Size1G => folded(0, page, FAR_LARGE.span, (memory.0 / page.size().0).max(1)),
    }
}

/// One guest page size on one kind of memory.
pub(super) struct InGuest<'m> {
    visits: Visits<'m>,
    window: &'m Window,
    /// The first thing that went wrong; from then on every probe counts as disturbed.
    pub(super) failed: Option<vm::Error>,
}

impl<'m> InGuest<'m> {
    pub(super) fn new(hypervisor: &Hypervisor, memory: Memory<'m>, window: &'m Window) -> Result<Self, vm::Error> {
        Ok(Self {
            visits: Visits::new(hypervisor, memory, std::slice::from_ref(window))?,
            window,
            failed: None,
        })
    }
}

impl Oracle for InGuest<'_> {
    fn limits(&self, sweep: Sweep) -> Limits {
        match (sweep, self.window.page) {
            (Sweep::Near, GuestPage::Size4K) => NEAR,
            (Sweep::Near, _) => Limits {
                span: FAR_LARGE.span,
                ..NEAR
            },
            (Sweep::Far, GuestPage::Size4K) => FAR,
            (Sweep::Far, _) => FAR_LARGE,
        }
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        if self.failed.is_some() {
            return None;
        }
        let order = shuffled(probe.pages as usize, pass.into());
        let lines = match probe.sweep {
            Sweep::Near => LINES,
            Sweep::Far => (u64::from(probe.pages) / CROWD).clamp(1, LINES),
        };
        let cycles = self.visits.cycles(&nodes(self.window, probe, &order, lines));
        cycles.map_err(|error| self.failed = Some(error)).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr)]

    use chase::arena::{Arena, Want};
    use model::guest::GuestPage;
    use model::{Bytes, PageKind};
    use vm::{Hypervisor, Memory};

    use super::{InGuest, window};
    use crate::tlb::probe::{Layout, Oracle, Probe, Sweep};

    #[test]
    fn few_pages_cost_less_than_very_many_although_all_are_the_same_memory() {
        let hypervisor = match Hypervisor::open() {
            Ok(hypervisor) => hypervisor,
            Err(why) => return testing::skipped(&why.to_string()),
        };
        for page in [GuestPage::Size4K, GuestPage::Size2M] {
            let bytes = Bytes::mib(8);
            let mut arena = Arena::new(&Want::plain(PageKind::Base, bytes)).expect("a little memory");
            let window = window(page, bytes);
            let memory = Memory::of_arena(&mut arena).expect("whole pages");
            let mut guest = InGuest::new(&hypervisor, memory, &window).expect("a guest");
            let mut floor = |sweep, pages| {
                let layout = Layout::DENSE;
                assert!(guest.limits(sweep).allow(layout, pages));
                let probe = Probe { sweep, layout, pages };
                let costs = (0..20).filter_map(|pass| guest.cost(probe, pass));
                costs.fold(f64::INFINITY, f64::min)
            };
            let (few, many) = (floor(Sweep::Far, 32), floor(Sweep::Far, 6000));
            assert!(few < many, "{page}: 32 pages {few}, 6000 pages {many}");
            assert!(floor(Sweep::Near, 4).is_finite());
            assert!(guest.failed.is_none());
        }
    }
}
