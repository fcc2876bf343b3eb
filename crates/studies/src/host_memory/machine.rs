//! A virtual machine while it is simulated: its regions, what they add up to, and where its cursors stand.

use std::collections::VecDeque;

use super::content::of_region;
use super::region::{Backing, Class, PLACES, Place, Region};
use super::scenario::{Pages, Vm, WHOLE};
use translation::random::{Chance, Permutation};

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) regions: Vec<Region>,
    /// The number of those that it shares pages with.
    pub(super) group: usize,
    /// Regions that it touches at all.
    pub(super) used: u32,
    /// Regions that it touched, from the first one on.
    pub(super) touched: u32,
    /// Pages that it may touch by now, times nanoseconds.
    pub(super) touch_left: u128,
    pub(super) may_have_large: bool,
    pub(super) is_reserved: bool,
    /// Is none of its memory taken back?
    pub(super) is_kept: bool,
    pub(super) places: [u64; PLACES.len()],
    /// Regions by backing and heat.
    backed: [[u32; 2]; 4],
    /// Pages in memory of their own, by heat.
    own: [u64; 2],
    /// Shared pages, by heat.
    shared: [u64; 2],
    /// Hot regions with pages that are not in memory.
    pub(super) faults: VecDeque<u32>,
    order: Permutation,
    next_victim: u64,
    /// The next region that shows activity, and how much of it is due, in regions times nanoseconds.
    pub(super) active_at: u32,
    pub(super) active_left: u128,
}

impl Machine {
    pub(super) fn new(vm: &Vm, number: usize, content: usize, group: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let is_reserved = vm.pages != Pages::Any;
        let used = if is_reserved { WHOLE } else { vm.used };
        let mut machine = Self {
            regions: Vec::with_capacity(vm.regions() as usize),
            group,
            used: ((u64::from(vm.regions()) * u64::from(used)).div_ceil(u64::from(WHOLE))) as u32,
            touched: 0,
            touch_left: 0,
            may_have_large: vm.large_pages,
            is_reserved,
            is_kept: is_reserved || vm.is_reserved,
            places: [0; PLACES.len()],
            backed: [[0; 2]; 4],
            own: [0; 2],
            shared: [0; 2],
            faults: VecDeque::new(),
            order: Permutation::new(u64::from(vm.regions()), seed ^ number as u64),
            next_victim: 0,
            active_at: 0,
            active_left: 0,
        };
        for number_of in 0..u64::from(vm.regions()) {
            let of_classes = of_region(vm.content, content as u64, number as u64, number_of, seed);
            let region = Region::new(of_classes, (chance.bits() >> 48) < u64::from(vm.active));
            machine.tally(&region, true);
            machine.regions.push(region);
        }
        machine
    }

    fn tally(&mut self, region: &Region, is_added: bool) {
        let heat = usize::from(region.is_hot);
        let add = |sum: &mut u64, count: u32| match is_added {
            true => *sum += u64::from(count),
            false => *sum -= u64::from(count),
        };
        for place in PLACES {
            add(&mut self.places[place as usize], region.at(place));
        }
        add(&mut self.own[heat], region.at(Place::Own));
        add(&mut self.shared[heat], region.at(Place::Shared));
        let regions = &mut self.backed[region.backing as usize][heat];
        *regions = if is_added { *regions + 1 } else { *regions - 1 };
    }

    /// Changes a region, and what all add up to.
    pub(super) fn change(&mut self, number: u32, change: impl FnOnce(&mut Region)) {
        let mut region = self.regions[number as usize];
        self.tally(&region, false);
        change(&mut region);
        self.tally(&region, true);
        self.regions[number as usize] = region;
    }

    pub(super) fn at(&self, place: Place) -> u64 {
        self.places[place as usize]
    }

    pub(super) fn backed(&self, backing: Backing) -> u32 {
        self.backed[backing as usize].iter().sum()
    }

    /// Of the regions in use all the time, the part on each backing: small, large, giant.
    pub(super) fn hot_parts(&self) -> [f64; 3] {
        let hot =
            [Backing::Small, Backing::Large, Backing::Giant].map(|backing| f64::from(self.backed[backing as usize][1]));
        let all = hot.iter().sum::<f64>().max(1.0);
        hot.map(|regions| regions / all)
    }

    /// Pages of its own in cold or in hot regions.
    pub(super) fn own(&self, is_hot: bool) -> u64 {
        self.own[usize::from(is_hot)]
    }

    /// What it pays for, where an idle page counts as much as 1 / (1 - tax) pages in use; in hundredths less the tax.
    pub(super) fn taxed(&self, tax: u32) -> u128 {
        let resident = |heat: usize| u128::from(self.own[heat] + self.shared[heat]);
        resident(1) * u128::from(100 - tax) + resident(0) * 100
    }

    /// The next region in an order that looks random which is like this; none if none is.
    pub(super) fn victim(&mut self, is_it: impl Fn(&Region) -> bool) -> Option<u32> {
        let count = self.regions.len() as u64;
        for _ in 0..count {
            let number = self.order.at(self.next_victim) as u32;
            self.next_victim = (self.next_victim + 1) % count;
            if is_it(&self.regions[number as usize]) {
                return Some(number);
            }
        }
        None
    }

    /// A page of it will be touched: once its turn comes it is brought back.
    pub(super) fn fault(&mut self, number: u32) {
        let region = &mut self.regions[number as usize];
        if !region.faults && region.at(Place::Swapped) + region.at(Place::Compressed) > 0 {
            region.faults = true;
            self.faults.push_back(number);
        }
    }

    /// Does it have common pages in any place?
    pub(super) fn has_common(&self, number: u32) -> bool {
        let region = &self.regions[number as usize];
        PLACES.iter().any(|place| region.count(Class::Common, *place) > 0)
    }
}
