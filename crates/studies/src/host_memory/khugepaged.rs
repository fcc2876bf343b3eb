//! khugepaged: collapses regions of base pages, unless too many of them are shared, swapped or missing.

use super::engine::Engine;
use super::region::{Backing, Class, Place, Region};

impl Engine<'_> {
    /// The regions that are due.
    pub(super) fn collapse_some(&mut self) {
        let Some(each) = self.scenario.khugepaged.each_region() else {
            return;
        };
        self.collapse_left += self.scenario.step_ns;
        let mut passed = 0;
        while self.collapse_left >= each && passed <= self.machines.len() {
            let (number, region) = self.collapse_at;
            let machine = &self.machines[number];
            let is_its = self.scenario.host.large_pages && machine.may_have_large && !machine.is_reserved;
            if region >= machine.touched || !is_its {
                self.collapse_at = ((number + 1) % self.machines.len(), 0);
                passed += 1;
                continue;
            }
            passed = 0;
            self.collapse_at.1 += 1;
            self.collapse_left -= each;
            self.counters.events += 1;
            let now = machine.regions[region as usize];
            if now.backing == Backing::Small && self.may_collapse(&now) {
                self.collapse(number, region);
            }
        }
        self.collapse_left = self.collapse_left.min(each);
    }

    fn may_collapse(&self, region: &Region) -> bool {
        let limits = &self.scenario.khugepaged;
        let zeros = region.count(Class::Zero, Place::Shared);
        // A mapping of the kernel's page of zeros counts as none.
        let none = if self.scenario.ksm.zeros_are_free() { zeros } else { 0 };
        region.at(Place::Shared) - none <= limits.max_ptes_shared
            && none <= limits.max_ptes_none
            && region.at(Place::Swapped) <= limits.max_ptes_swap
    }
}
