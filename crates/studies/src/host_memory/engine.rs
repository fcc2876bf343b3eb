//! The steps, and the few moves that all memory goes through: back, share, break, collapse, balloon, take out and bring back.

use std::collections::BTreeMap;

use super::content::Chunk;
use super::frames::Frames;
use super::machine::Machine;
use super::policy::Policy;
use super::region::{Backing, CLASSES, Class, Place};
use super::scenario::{Pages, Scenario};
use super::states::{Edge, Level, next};
use super::totals::Totals;
use super::{Ns, PAGE, PAGES, REGION};
use translation::random::Chance;

const REGION_PAGES: u64 = PAGES as u64;
pub(super) const SECOND: u64 = 1_000_000_000;

/// The simulation under one policy.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) policy: Policy,
    pub(super) edges: Vec<Edge>,
    pub(super) level: Level,
    pub(super) frames: Frames,
    pub(super) machines: Vec<Machine>,
    /// By content and region.
    pub(super) chunks: Vec<Vec<Chunk>>,
    /// Shared pages of zeros.
    pub(super) zeros: u64,
    /// Pages of memory behind all shared pages.
    pub(super) shared_frames: u64,
    /// Compressed pages.
    pub(super) zipped: u64,
    /// What happened so far.
    pub(super) counters: Totals,
    pub(super) chance: Chance,
    pub(super) step: u64,
    /// Where scans stand: of equal pages, and of regions to collapse.
    pub(super) scan_at: (usize, u32),
    pub(super) collapse_at: (usize, u32),
    /// Full scans for equal pages so far.
    pub(super) scans: u64,
    /// The scan in which zeros last split a huge page.
    pub(super) zero_split: u64,
    /// What scans may do by now: pages times nanoseconds, or nanoseconds.
    pub(super) scan_left: u128,
    pub(super) merge_left: Ns,
    pub(super) collapse_left: Ns,
}

impl<'a> Engine<'a> {
    pub(super) fn new(scenario: &'a Scenario, policy: Policy) -> Self {
        let host = &scenario.host;
        let edges = scenario.states_under(policy).edges(host.memory);
        let blocks = host.memory.0 / REGION;
        let (machines, chunks) = machines(scenario, policy);
        let mut engine = Self {
            scenario,
            policy,
            level: Level::High,
            frames: Frames::new(blocks, host.used.0.div_ceil(REGION), u64::from(host.fragmented)),
            machines,
            chunks,
            zeros: 0,
            shared_frames: 0,
            zipped: 0,
            counters: Totals::default(),
            chance: Chance::new(scenario.seed ^ 0x686f_7374),
            step: 0,
            scan_at: (0, 0),
            collapse_at: (0, 0),
            scans: 1,
            zero_split: 0,
            scan_left: 0,
            merge_left: 0,
            collapse_left: 0,
            edges,
        };
        engine.reserve();
        engine
    }

    /// Reserved machines have their memory before all others, on 1 GiB pages as far as there are such.
    fn reserve(&mut self) {
        const EACH: u32 = 512;
        for number in 0..self.machines.len() {
            let pages = self.scenario.vms[number].pages;
            if pages == Pages::Any {
                continue;
            }
            let used = self.machines[number].used;
            for region in 0..used {
                let is_first = region.is_multiple_of(EACH);
                let is_whole = pages == Pages::Giant && self.frames.free_blocks >= u64::from(EACH);
                let before = region
                    .checked_sub(1)
                    .map(|before| self.machines[number].regions[before as usize].backing);
                let is_giant = if is_first {
                    is_whole
                } else {
                    before == Some(Backing::Giant)
                };
                if !self.back(number, region, is_giant) {
                    break;
                }
                self.machines[number].touched = region + 1;
            }
        }
    }

    pub(super) fn step(&mut self) {
        self.level = next(&self.edges, self.level, self.frames.free());
        self.demand();
        if self.policy.is_linux() {
            self.merge();
        } else {
            self.scan();
        }
        self.reclaim();
        if self.policy.is_linux() {
            self.collapse_some();
        }
        self.frames.compact(self.in_step(self.scenario.rates.compact));
        self.step += 1;
    }

    /// So many a second, in one step.
    pub(super) fn in_step(&self, each_second: u64) -> u64 {
        (u128::from(each_second) * u128::from(self.scenario.step_ns) / u128::from(SECOND)) as u64
    }

    /// Free pages that new memory leaves alone.
    pub(super) fn floor(&self) -> u64 {
        self.edges.last().map_or(0, |edge| edge.below)
    }

    /// Does a new region get a huge page, if there is one?
    fn gives_large(&self, number: usize) -> bool {
        let machine = &self.machines[number];
        let is_allowed = self.scenario.host.large_pages && machine.may_have_large;
        is_allowed && (!self.policy.breaks() || self.level == Level::High) || machine.is_reserved
    }

    /// Backs a region that nothing backs; not if too little is free.
    pub(super) fn back(&mut self, number: usize, region: u32, is_giant: bool) -> bool {
        let wants = self.scenario.host.large_pages && self.machines[number].may_have_large;
        let backing = if self.gives_large(number) && self.frames.take_block() {
            if is_giant { Backing::Giant } else { Backing::Large }
        } else if self.frames.take_small(REGION_PAGES) {
            self.counters.emulated += u64::from(wants);
            Backing::Small
        } else {
            return false;
        };
        self.counters.events += 1;
        self.machines[number].change(region, |region| {
            region.move_all(Place::Ballooned, Place::Absent);
            region.move_all(Place::Absent, Place::Own);
            region.backing = backing;
        });
        self.copies(number, region, true);
        true
    }

    /// A region with common pages is there, or no longer.
    fn copies(&mut self, number: usize, region: u32, is_there: bool) {
        if self.machines[number].has_common(region) {
            let copies = &mut self.chunk(number, region).copies;
            *copies = if is_there { *copies + 1 } else { *copies - 1 };
        }
    }

    pub(super) fn chunk(&mut self, number: usize, region: u32) -> &mut Chunk {
        &mut self.chunks[self.machines[number].group][region as usize]
    }

    /// The most mappings of a shared page.
    fn most_mappings(&self) -> u32 {
        if self.policy.is_linux() {
            self.scenario.ksm.max_page_sharing.max(1)
        } else {
            u32::MAX
        }
    }

    fn zero_frames(&self) -> u64 {
        if self.policy.is_linux() && self.scenario.ksm.zeros_are_free() {
            return 0;
        }
        self.zeros.div_ceil(u64::from(self.most_mappings()))
    }

    /// A region shares another number of pages of a class; the pages of memory behind them come and go.
    fn sharing(&mut self, number: usize, region: u32, class: Class, before: u32, after: u32) {
        let most = self.most_mappings();
        let (old, new) = match class {
            Class::Zero => {
                let old = self.zero_frames();
                self.zeros = self.zeros - u64::from(before) + u64::from(after);
                (old, self.zero_frames())
            }
            Class::Common => {
                let chunk = self.chunk(number, region);
                let old = chunk.frames(most);
                chunk.change(before, after);
                (old, chunk.frames(most))
            }
            Class::Unique | Class::Volatile => return,
        };
        self.shared_frames = self.shared_frames - old + new;
        // Where it is more, its sharers have just given back more.
        self.frames.change_small(old, new);
    }

    /// Pages of a class in a small region that are its own are shared from now on; how many.
    pub(super) fn share(&mut self, number: usize, region: u32, class: Class) -> u32 {
        let now = &self.machines[number].regions[region as usize];
        debug_assert!(now.backing == Backing::Small);
        let (count, before) = (now.count(class, Place::Own), now.count(class, Place::Shared));
        if count > 0 {
            self.frames.give_small(u64::from(count));
            self.sharing(number, region, class, before, before + count);
            self.machines[number].change(region, |region| {
                region.move_pages(class, Place::Own, Place::Shared, count);
            });
        }
        count
    }

    /// A huge page is base pages from now on.
    pub(super) fn break_large(&mut self, number: usize, region: u32) {
        self.frames.break_block();
        self.counters.events += 1;
        self.machines[number].change(region, |region| region.backing = Backing::Small);
        if self.policy.is_linux() && self.scenario.ksm.split_frees_zeros {
            self.share(number, region, Class::Zero);
        }
    }

    /// A small region becomes a huge page, with all that was shared or elsewhere copied into it; not without a whole free block.
    pub(super) fn collapse(&mut self, number: usize, region: u32) -> bool {
        if !self.frames.take_block() {
            return false;
        }
        self.counters.events += 1;
        self.counters.collapsed += 1;
        let before = self.machines[number].regions[region as usize];
        for class in CLASSES {
            self.sharing(number, region, class, before.count(class, Place::Shared), 0);
        }
        self.frames.give_small(u64::from(before.at(Place::Own)));
        self.counters.swapped_in.0 += u64::from(before.at(Place::Swapped)) * PAGE;
        self.machines[number].change(region, |region| {
            region.move_all(Place::Shared, Place::Own);
            region.move_all(Place::Swapped, Place::Own);
            region.backing = Backing::Large;
        });
        true
    }

    /// The guest gives up a whole region; pages of memory that are free for it.
    pub(super) fn balloon(&mut self, number: usize, region: u32) -> u64 {
        let before = self.machines[number].regions[region as usize];
        let free = self.frames.free();
        self.copies(number, region, false);
        for class in CLASSES {
            self.sharing(number, region, class, before.count(class, Place::Shared), 0);
        }
        match before.backing {
            Backing::Large => self.frames.give_block(),
            _ => self.frames.give_small(u64::from(before.at(Place::Own))),
        }
        self.zip(self.zipped - u64::from(before.at(Place::Compressed)));
        self.counters.events += 1;
        self.counters.ballooned.0 += REGION;
        self.machines[number].change(region, |region| {
            for place in [Place::Own, Place::Shared, Place::Compressed, Place::Swapped] {
                region.move_all(place, Place::Ballooned);
            }
            region.backing = Backing::None;
            region.is_seen = false;
        });
        self.frames.free() - free
    }

    /// So many pages are compressed from now on, two in a page of memory.
    pub(super) fn zip(&mut self, zipped: u64) {
        let (old, new) = (self.zipped.div_ceil(2), zipped.div_ceil(2));
        self.zipped = zipped;
        self.frames.change_small(old, new);
    }

    /// Shared pages of a region are written: they have memory of their own again.
    pub(super) fn rewrite(&mut self, number: usize, region: u32, class: Class, count: u32) {
        if count == 0 || self.frames.free() < u64::from(count) + self.floor() {
            return;
        }
        let before = self.machines[number].regions[region as usize].count(class, Place::Shared);
        let had_common = self.machines[number].has_common(region);
        self.sharing(number, region, class, before, before - count);
        self.frames.take_small(u64::from(count));
        self.counters.rewritten.0 += u64::from(count) * PAGE;
        self.counters.events += 1;
        self.machines[number].change(region, |region| region.rewrite(class, count));
        if had_common && !self.machines[number].has_common(region) {
            self.chunk(number, region).copies -= 1;
        }
    }
}

/// The machines, and the chunks of those that share.
fn machines(scenario: &Scenario, policy: Policy) -> (Vec<Machine>, Vec<Vec<Chunk>>) {
    let mut chunks: Vec<Vec<Chunk>> = Vec::new();
    let mut machines = Vec::with_capacity(scenario.vms.len());
    let (mut contents, mut groups) = (BTreeMap::new(), BTreeMap::new());
    for (number, vm) in scenario.vms.iter().enumerate() {
        let next = contents.len();
        let content = *contents.entry(vm.group.as_str()).or_insert(next);
        let group = *groups.entry(scenario.shares_with(number, policy)).or_insert_with(|| {
            chunks.push(Vec::new());
            chunks.len() - 1
        });
        let regions = vm.regions() as usize;
        if chunks[group].len() < regions {
            chunks[group].resize_with(regions, Chunk::default);
        }
        machines.push(Machine::new(vm, number, content, group, scenario.seed));
    }
    (machines, chunks)
}
