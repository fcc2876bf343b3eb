//! ESX's scan for equal pages, and which huge pages it breaks to share what is in them.

use super::engine::{Engine, SECOND};
use super::policy::Policy;
use super::region::{Backing, Class, Place};
use super::states::{Level, States};
use super::{PAGES, REGION};

impl Engine<'_> {
    /// The regions that are due. When memory is short they come faster, where huge pages are broken for it.
    pub(super) fn scan(&mut self) {
        let rates = self.scenario.rates;
        let usual = rates.scan.unwrap_or(self.scenario.pages() / 3600).max(1);
        let rate = if self.policy.breaks() && self.rushes() {
            rates.rush.max(usual)
        } else {
            usual
        };
        let each = u128::from(PAGES) * u128::from(SECOND);
        self.scan_left += u128::from(rate) * u128::from(self.scenario.step_ns);
        let due = (self.scan_left / each) as u64;
        self.scan_left %= each;
        self.visit(due, Self::look);
    }

    /// Looks at so many regions, each machine's in turn; how many were not there.
    pub(super) fn visit(&mut self, mut due: u64, look: impl Fn(&mut Self, usize, u32)) -> u64 {
        let mut passed = 0;
        while due > 0 && passed <= self.machines.len() {
            match self.next_region() {
                None => passed += 1,
                Some((number, region)) => {
                    (due, passed) = (due - 1, 0);
                    self.counters.scanned.0 += REGION;
                    self.counters.events += 1;
                    look(self, number, region);
                }
            }
        }
        due
    }

    /// ESXi 6 shares at once below 100 % of minFree; before it, sharing hurries before pages are swapped.
    fn rushes(&self) -> bool {
        self.level
            >= if self.scenario.states == States::Esx6 {
                Level::Clear
            } else {
                Level::Hard
            }
    }

    /// The next touched region of those that may be shared; none at the end of a machine.
    pub(super) fn next_region(&mut self) -> Option<(usize, u32)> {
        let (number, region) = self.scan_at;
        let machine = &self.machines[number];
        if region < machine.touched && !machine.is_reserved {
            self.scan_at.1 += 1;
            return Some((number, region));
        }
        self.scan_at = (number + 1, 0);
        if self.scan_at.0 == self.machines.len() {
            self.scan_at.0 = 0;
            self.scans += 1;
        }
        None
    }

    fn look(&mut self, number: usize, region: u32) {
        let backing = self.machines[number].regions[region as usize].backing;
        if backing == Backing::Large && self.is_to_break(number, region) {
            self.counters.broken += 1;
            self.break_large(number, region);
            self.share_all(number, region);
        } else if backing == Backing::Small {
            self.share_all(number, region);
        }
    }

    /// Pages of its own that have an equal one somewhere.
    pub(super) fn shareable(&mut self, number: usize, region: u32) -> u32 {
        let has_copies = self.chunk(number, region).copies > 1;
        let now = &self.machines[number].regions[region as usize];
        let common = if has_copies {
            now.count(Class::Common, Place::Own)
        } else {
            0
        };
        now.count(Class::Zero, Place::Own) + common
    }

    pub(super) fn share_all(&mut self, number: usize, region: u32) {
        let has_copies = self.chunk(number, region).copies > 1;
        self.share(number, region, Class::Zero);
        if has_copies {
            self.share(number, region, Class::Common);
        }
    }

    fn is_to_break(&mut self, number: usize, region: u32) -> bool {
        let shareable = self.shareable(number, region);
        let is_hot = self.machines[number].regions[region as usize].is_hot;
        match self.policy {
            Policy::BreakAll => shareable > 0 && (self.level >= Level::Break && self.breaks_early() || self.rushes()),
            Policy::Shareability => {
                let is_worth_it = u64::from(shareable) << 16 >= u64::from(self.scenario.least_share) * u64::from(PAGES);
                is_worth_it
                    && shareable > 0
                    && if is_hot {
                        self.level >= Level::Hard
                    } else {
                        self.is_early()
                    }
            }
            _ => false,
        }
    }

    /// Does the scan break huge pages before sharing has to hurry?
    fn breaks_early(&self) -> bool {
        self.edges.first().is_some_and(|edge| edge.level == Level::Break)
    }

    /// Is less free than twice the first edge?
    fn is_early(&self) -> bool {
        self.edges
            .first()
            .is_some_and(|edge| self.frames.free() < 2 * edge.until)
    }
}
