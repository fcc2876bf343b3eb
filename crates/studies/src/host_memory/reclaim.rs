//! Taking memory back: who pays the idle memory tax, what is ballooned, and what is compressed and swapped.

use super::content::whole;
use super::engine::Engine;
use super::region::{Backing, CLASSES, Place, Region};
use super::states::Level;
use super::{PAGE, PAGES};

/// The most of a machine's memory that its balloon takes, in per cent (Mem.CtlMaxPercent).
const MOST_BALLOONED: u64 = 65;
/// The most of a machine's memory that is compressed, in per cent (Mem.MemZipMaxPct).
const MOST_ZIPPED: u64 = 10;

/// Choices of a machine in a step, about: each then pays for several regions, so that a step's cost grows with machines and no faster.
const TURNS: u64 = 16;

impl Engine<'_> {
    /// Takes memory until the level that memory is at would end.
    pub(super) fn reclaim(&mut self) {
        let level = self.level;
        let Some(until) = self
            .edges
            .iter()
            .find(|edge| edge.level == level)
            .map(|edge| edge.until)
        else {
            return;
        };
        if level >= Level::Soft && !self.policy.is_linux() {
            self.inflate(until);
        }
        if level >= Level::Hard {
            self.swap_out(until);
        }
    }

    fn inflate(&mut self, until: u64) {
        let mut budget = self.in_step(self.scenario.rates.balloon) / u64::from(PAGES);
        let batch = budget.div_ceil(TURNS).max(1);
        while budget > 0 && self.frames.free() < until {
            let Some(number) = self.poorest(can_give) else {
                return;
            };
            for _ in 0..batch.min(budget) {
                budget -= 1;
                if self.frames.free() >= until || !can_give(&self.machines[number]) {
                    break;
                }
                match self.machines[number].victim(is_idle) {
                    Some(region) => self.balloon(number, region),
                    None => return,
                };
            }
        }
    }

    fn swap_out(&mut self, until: u64) {
        let mut budget = self.in_step(self.scenario.rates.swap);
        let batch = budget.div_ceil(u64::from(PAGES) * TURNS).max(1);
        while budget > 0 && self.frames.free() < until {
            let cold_alone = self.policy.is_linux()
                && self
                    .machines
                    .iter()
                    .any(|machine| !machine.is_kept && has(machine, Some(false)));
            let heat = cold_alone.then_some(false);
            let Some(number) = self.poorest(|machine| has(machine, heat)) else {
                return;
            };
            let is_it = |region: &Region| region.at(Place::Own) > 0 && heat.is_none_or(|heat| region.is_hot == heat);
            for _ in 0..batch {
                if budget == 0 || self.frames.free() >= until || !has(&self.machines[number], heat) {
                    break;
                }
                let Some(region) = self.machines[number].victim(is_it) else {
                    return;
                };
                if !self.shares_instead(number, region) {
                    budget = budget.saturating_sub(self.take_out(number, region));
                }
            }
        }
    }

    /// Share before swap: a huge page with something to share is broken, and stays in memory.
    fn shares_instead(&mut self, number: usize, region: u32) -> bool {
        let is_large = self.machines[number].regions[region as usize].backing == Backing::Large;
        if !is_large || !self.policy.breaks() || self.shareable(number, region) == 0 {
            return false;
        }
        self.counters.broken += 1;
        self.break_large(number, region);
        self.share_all(number, region);
        true
    }

    /// Compresses and swaps all pages of a region that are its own; how many were swapped.
    fn take_out(&mut self, number: usize, region: u32) -> u64 {
        if self.machines[number].regions[region as usize].backing == Backing::Large {
            self.counters.broken_to_swap += 1;
            self.break_large(number, region);
        }
        let now = self.machines[number].regions[region as usize];
        let machine = &self.machines[number];
        let most = machine.regions.len() as u64 * u64::from(PAGES) * MOST_ZIPPED / 100;
        let room = most.saturating_sub(machine.at(Place::Compressed));
        let may_zip = !self.policy.is_linux() && room >= u64::from(PAGES);
        let parts = if may_zip {
            u64::from(self.scenario.compressible)
        } else {
            0
        };
        let each = CLASSES.map(|class| {
            let own = now.count(class, Place::Own);
            let zipped = whole(u64::from(own) * parts, &mut self.chance).min(own);
            (class, zipped, own - zipped)
        });
        let zipped: u64 = each.iter().map(|(_, zipped, _)| u64::from(*zipped)).sum();
        let swapped: u64 = each.iter().map(|(_, _, swapped)| u64::from(*swapped)).sum();
        self.frames.give_small(zipped + swapped);
        self.zip(self.zipped + zipped);
        self.counters.events += 1;
        self.counters.compressed.0 += zipped * PAGE;
        self.counters.swapped_out.0 += swapped * PAGE;
        self.machines[number].change(region, |region| {
            for (class, zipped, swapped) in each {
                region.move_pages(class, Place::Own, Place::Compressed, zipped);
                region.move_pages(class, Place::Own, Place::Swapped, swapped);
            }
        });
        if now.is_hot {
            self.machines[number].fault(region);
        }
        swapped
    }

    /// Of the machines like this, the one with the least shares for each page, where idle pages cost more.
    fn poorest(&self, is_it: impl Fn(&super::machine::Machine) -> bool) -> Option<usize> {
        let mut poorest: Option<(usize, u128, u128)> = None;
        for (number, machine) in self.machines.iter().enumerate() {
            if machine.is_kept || !is_it(machine) {
                continue;
            }
            let shares = u128::from(self.scenario.vms[number].shares);
            let pages = machine.taxed(self.scenario.idle_tax).max(1);
            if poorest.is_none_or(|(_, least, of)| shares * of < least * pages) {
                poorest = Some((number, shares, pages));
            }
        }
        poorest.map(|(number, ..)| number)
    }
}

/// Can its balloon take more?
fn can_give(machine: &super::machine::Machine) -> bool {
    let all = machine.regions.len() as u64 * u64::from(PAGES);
    machine.own(false) > 0 && machine.at(Place::Ballooned) + u64::from(PAGES) <= all * MOST_BALLOONED / 100
}

fn is_idle(region: &Region) -> bool {
    !region.is_hot && region.backing != Backing::None && region.at(Place::Own) > 0
}

/// Does it have pages of its own with this heat?
fn has(machine: &super::machine::Machine, heat: Option<bool>) -> bool {
    match heat {
        Some(heat) => machine.own(heat) > 0,
        None => machine.own(false) + machine.own(true) > 0,
    }
}
