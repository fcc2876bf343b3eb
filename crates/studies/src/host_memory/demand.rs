//! What guests do: they touch new memory, go on using their hot regions, come back to cold ones, and write shared pages.

use super::content::whole;
use super::engine::{Engine, SECOND};
use super::region::{Backing, Class, Place};
use super::scenario::WHOLE;
use super::states::Level;
use super::{PAGE, PAGES};

/// Each region shows its activity once in so many minutes.
const ACTIVITY_MINUTES: u64 = 10;

impl Engine<'_> {
    /// All guests, in an order that turns from step to step.
    pub(super) fn demand(&mut self) {
        let count = self.machines.len();
        let first = (self.step % count as u64) as usize;
        let mut swap = self.in_step(self.scenario.rates.swap);
        for number in (first..count).chain(0..first) {
            self.faults(number, &mut swap);
            self.touch(number);
            self.activity(number);
        }
    }

    /// Touches new regions.
    fn touch(&mut self, number: usize) {
        let rate = self.scenario.vms[number].touch;
        let machine = &mut self.machines[number];
        if machine.touched >= machine.used {
            return;
        }
        let region = u128::from(PAGES) * u128::from(SECOND);
        machine.touch_left += u128::from(rate) * u128::from(self.scenario.step_ns);
        while self.machines[number].touched < self.machines[number].used && self.machines[number].touch_left >= region {
            let next = self.machines[number].touched;
            let is_short = self.level == Level::Low || self.frames.free() < self.floor() + u64::from(PAGES);
            if is_short || !self.back(number, next, false) {
                self.counters.waited += 1;
                // What it could not touch is not saved up.
                self.machines[number].touch_left = region;
                return;
            }
            let machine = &mut self.machines[number];
            machine.touched += 1;
            machine.touch_left -= region;
        }
    }

    /// Brings back what hot regions miss, as far as swapping is fast enough and memory is there.
    fn faults(&mut self, number: usize, swap: &mut u64) {
        while let Some(&region) = self.machines[number].faults.front() {
            let now = &self.machines[number].regions[region as usize];
            let (swapped, compressed) = (now.at(Place::Swapped), now.at(Place::Compressed));
            let is_there = self.frames.free() >= u64::from(swapped + compressed) + self.floor();
            if u64::from(swapped) > *swap || !is_there {
                return;
            }
            *swap -= u64::from(swapped);
            self.machines[number].faults.pop_front();
            self.bring_back(number, region);
        }
    }

    fn bring_back(&mut self, number: usize, region: u32) {
        let now = &self.machines[number].regions[region as usize];
        let (swapped, compressed) = (u64::from(now.at(Place::Swapped)), u64::from(now.at(Place::Compressed)));
        self.frames.take_small(swapped + compressed);
        self.zip(self.zipped - compressed);
        self.counters.events += 1;
        self.counters.swapped_in.0 += swapped * PAGE;
        self.counters.decompressed.0 += compressed * PAGE;
        self.machines[number].change(region, |region| {
            region.move_all(Place::Swapped, Place::Own);
            region.move_all(Place::Compressed, Place::Own);
            region.faults = false;
        });
    }

    /// Regions in turn: shared pages are written, and cold regions are touched.
    fn activity(&mut self, number: usize) {
        let touched = self.machines[number].touched;
        let all = u128::from(ACTIVITY_MINUTES * 60 * SECOND);
        let machine = &mut self.machines[number];
        machine.active_left += u128::from(touched) * u128::from(self.scenario.step_ns);
        let mut due = (machine.active_left / all) as u32;
        machine.active_left %= all;
        while due > 0 && touched > 0 {
            due -= 1;
            let machine = &mut self.machines[number];
            let region = machine.active_at % touched;
            machine.active_at = (region + 1) % touched;
            self.shows_activity(number, region);
        }
    }

    fn shows_activity(&mut self, number: usize, region: u32) {
        let vm = &self.scenario.vms[number];
        let now = self.machines[number].regions[region as usize];
        if vm.rewritten > 0 && now.at(Place::Shared) > 0 {
            let parts = u64::from(vm.rewritten) * ACTIVITY_MINUTES / 60;
            for class in [Class::Zero, Class::Common] {
                let count = whole(u64::from(now.count(class, Place::Shared)) * parts, &mut self.chance);
                self.rewrite(number, region, class, count.min(now.count(class, Place::Shared)));
            }
        }
        let is_away = now.backing == Backing::None || now.at(Place::Swapped) + now.at(Place::Compressed) > 0;
        if now.is_hot || !is_away {
            return;
        }
        let odds = u64::from(WHOLE) * ACTIVITY_MINUTES / u64::from(self.scenario.cold_minutes.max(1));
        if (self.chance.bits() >> 48) >= odds {
            return;
        }
        if now.backing == Backing::None {
            self.deflate(number, region);
        } else {
            self.machines[number].fault(region);
        }
    }

    /// A guest gets a region back from its balloon, once enough is free that no edge is near.
    fn deflate(&mut self, number: usize, region: u32) {
        let first = self.edges.first().map_or(0, |edge| edge.until);
        let margin = (1 << 24) / PAGE;
        if self.level == Level::High && self.frames.free() >= first + margin + u64::from(PAGES) {
            self.back(number, region, false);
        }
    }
}
