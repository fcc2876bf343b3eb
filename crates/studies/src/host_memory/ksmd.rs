//! ksmd: each page is seen once before it can be merged, and a huge page with one match is split.

use super::PAGES;
use super::engine::Engine;
use super::policy::Policy;
use super::region::{Backing, Class, Place};

impl Engine<'_> {
    /// The regions that are due by the rate of the scan.
    pub(super) fn merge(&mut self) {
        if self.policy != Policy::Ksm {
            return;
        }
        let each = self.scenario.ksm.each_page().max(1) * u64::from(PAGES);
        self.merge_left += self.scenario.step_ns;
        let left = self.visit(self.merge_left / each, Self::merge_region);
        self.merge_left = (self.merge_left % each + left * each).min(each);
    }

    fn merge_region(&mut self, number: usize, region: u32) {
        let now = self.machines[number].regions[region as usize];
        if now.backing == Backing::None {
            return;
        }
        let zeros = now.count(Class::Zero, Place::Own);
        if zeros > 0 && now.is_seen && self.merges_zeros(now.backing == Backing::Large) {
            self.merge_pages(number, region, Class::Zero);
        }
        if now.count(Class::Common, Place::Own) > 0 {
            self.merge_common(number, region, now.is_seen);
        }
        self.machines[number].regions[region as usize].is_seen = true;
    }

    /// Zeros in one huge page match each other first: it is split, and that frees them all without any page being merged. So no merged page
    /// is there for others to match, and each scan splits one huge page. (Seen on Linux 6.18: benches/ksm.py --zeros.)
    fn merges_zeros(&mut self, is_large: bool) -> bool {
        let ksm = &self.scenario.ksm;
        if ksm.use_zero_pages || !is_large || !ksm.split_frees_zeros {
            return true;
        }
        let is_first = self.zero_split != self.scans;
        self.zero_split = self.scans;
        is_first
    }

    /// Merged pages are found at first sight. Pages that wait for a partner are forgotten with the next scan.
    fn merge_common(&mut self, number: usize, region: u32, is_seen: bool) {
        let scan = self.scans;
        let chunk = self.chunk(number, region);
        if chunk.is_merged() {
            return self.merge_pages(number, region, Class::Common);
        }
        if !is_seen {
            return;
        }
        match chunk.waiting {
            Some((since, other)) if since == scan && other as usize != number => {
                chunk.waiting = None;
                let partner = &self.machines[other as usize].regions[region as usize];
                if partner.backing != Backing::None && partner.count(Class::Common, Place::Own) > 0 {
                    self.merge_pages(other as usize, region, Class::Common);
                    self.merge_pages(number, region, Class::Common);
                }
            }
            _ => chunk.waiting = Some((scan, number as u32)),
        }
    }

    fn merge_pages(&mut self, number: usize, region: u32, class: Class) {
        if self.machines[number].regions[region as usize].backing == Backing::Large {
            self.counters.broken += 1;
            self.break_large(number, region);
        }
        self.share(number, region, class);
    }
}
