//! Runs accesses through TLBs and walkers, and counts what happens.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::AddAssign;

use super::access::Access;
use crate::setting::{Mode, Setting};
use crate::tlb::front::Front;
use crate::tlb::level::{Array, LevelCounts};
use crate::walk::shadow::Exits;
use crate::walk::spec::WalkerSpec;
use crate::walk::walker::{WalkCounts, Walker};

/// Accesses that are simulated together, and that a source adds at a time.
pub const BLOCK: usize = 256;

/// What a program does to its page tables between accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operating system writes the page-table entry that maps an address.
    TableWrite(u64),
    /// It drops the translation of an address on all virtual CPUs (INVLPG, and a shootdown of the others).
    Invalidate(u64),
    /// It switches to another address space, on one virtual CPU.
    Switch,
    /// A trace leaves a part of the run out; what the TLBs then hold is not known, and stays.
    Gap,
}

/// Where accesses come from.
pub trait Accesses {
    /// Why there may be no more.
    type Error;

    /// Adds at most [`BLOCK`] accesses; an event ends the block. No access and no event is the end.
    ///
    /// # Errors
    /// As the source says.
    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Self::Error>;

    /// The virtual CPU that made what came last, from 0.
    fn vcpu(&self) -> usize {
        0
    }
}

/// Everything counted in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub accesses: u64,
    /// By TLB level.
    pub levels: Vec<LevelCounts>,
    pub walkers: Vec<WalkCounts>,
    /// Exits of shadow paging.
    pub exits: Exits,
    /// Interrupts of other virtual CPUs, which dropped a translation then.
    pub shootdowns: u64,
}

impl Counts {
    /// First-level TLB misses that another level held.
    pub fn second_level_hits(&self) -> u64 {
        self.levels
            .iter()
            .skip(1)
            .map(|level| level.lookups - level.misses)
            .sum()
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, more: &Self) {
        self.accesses += more.accesses;
        for (level, more) in self.levels.iter_mut().zip(&more.levels) {
            level.lookups += more.lookups;
            level.misses += more.misses;
        }
        for (walker, more) in self.walkers.iter_mut().zip(&more.walkers) {
            walker.add(more);
        }
        self.exits.add(more.exits);
        self.shootdowns += more.shootdowns;
    }
}

/// A machine that runs accesses: for each virtual CPU a set of TLBs, and one or more walkers behind it that do not influence each other.
#[derive(Clone, Debug)]
pub struct Engine {
    mode: Mode,
    cpus: Vec<Cpu>,
    /// Pages with an entry in the shadow tables.
    shadowed: HashSet<u64>,
    exits: Exits,
    shootdowns: u64,
    accesses: u64,
    block: Vec<Access>,
    /// The accesses of a block that miss in every TLB.
    walked: Vec<usize>,
}

/// What each virtual CPU has of its own.
#[derive(Clone, Debug)]
struct Cpu {
    front: Front,
    walkers: Vec<Walker>,
}

impl Cpu {
    /// What its TLBs and walkers counted.
    fn counts(&self) -> Counts {
        Counts {
            levels: self.front.counts().collect(),
            walkers: self.walkers.iter().map(|walker| walker.counts).collect(),
            ..Counts::default()
        }
    }

    fn flush(&mut self) {
        self.front.flush();
        self.walkers.iter_mut().for_each(Walker::flush);
    }
}

impl Engine {
    /// A cold machine with one virtual CPU.
    pub fn new(arrays: &[Array], setting: Setting, walkers: &[WalkerSpec]) -> Self {
        let walker = |spec| Walker::new(spec, setting);
        let cpu = Cpu {
            front: Front::new(arrays, setting),
            walkers: walkers.iter().map(walker).collect(),
        };
        Self {
            mode: setting.mode,
            cpus: vec![cpu],
            shadowed: HashSet::new(),
            exits: Exits::default(),
            shootdowns: 0,
            accesses: 0,
            block: Vec::with_capacity(BLOCK),
            walked: Vec::new(),
        }
    }

    /// The machine with so many virtual CPUs, which share the page tables; at least one.
    #[must_use]
    pub fn with_vcpus(mut self, vcpus: usize) -> Self {
        let cpu = self.cpus[0].clone();
        self.cpus.resize(vcpus.max(1), cpu);
        self
    }

    /// Runs so many accesses, or all that there are. What the last block has beyond them is left out.
    ///
    /// # Errors
    /// As the source of the accesses.
    pub fn run<A: Accesses>(&mut self, accesses: &mut A, most: u64) -> Result<(), A::Error> {
        let end = self.accesses.saturating_add(most);
        while self.accesses < end {
            let mut block = std::mem::take(&mut self.block);
            block.clear();
            let event = accesses.fill(&mut block)?;
            block.truncate((end - self.accesses).try_into().unwrap_or(usize::MAX));
            let (cpu, is_end) = (accesses.vcpu() % self.cpus.len(), block.is_empty() && event.is_none());
            self.run_block(cpu, &block);
            self.block = block;
            if let Some(event) = event {
                self.happens(cpu, event);
            }
            if is_end {
                break;
            }
        }
        Ok(())
    }

    /// What a pattern counts behind so many accesses that warm up.
    pub fn run_pattern<A: Accesses<Error = Infallible>>(mut self, accesses: &mut A, warm_up: u64, most: u64) -> Counts {
        let Ok(()) = self.run(accesses, warm_up);
        self.reset_counts();
        let Ok(()) = self.run(accesses, most);
        self.counts()
    }

    /// Runs accesses that lie in memory, on the first virtual CPU; nothing is copied.
    pub fn run_stored(&mut self, accesses: &[Access]) {
        accesses.chunks(BLOCK).for_each(|block| self.run_block(0, block));
    }

    /// What was counted since the last call of [`Self::reset_counts`], of all virtual CPUs together.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            accesses: self.accesses,
            exits: self.exits,
            shootdowns: self.shootdowns,
            ..self.cpus[0].counts()
        };
        self.cpus[1..].iter().for_each(|cpu| counts += &cpu.counts());
        counts
    }

    /// Begins to count anew; everything stays as warm as it is.
    pub fn reset_counts(&mut self) {
        self.accesses = 0;
        self.exits = Exits::default();
        self.shootdowns = 0;
        for cpu in &mut self.cpus {
            cpu.front.reset_counts();
            cpu.walkers
                .iter_mut()
                .for_each(|walker| walker.counts = WalkCounts::default());
        }
    }

    /// Empties the TLBs and what walkers know of the guest's upper levels.
    pub fn flush(&mut self) {
        self.cpus.iter_mut().for_each(Cpu::flush);
    }

    fn run_block(&mut self, cpu: usize, accesses: &[Access]) {
        let Cpu { front, walkers } = &mut self.cpus[cpu];
        self.accesses += accesses.len() as u64;
        self.walked.clear();
        let places = accesses.iter().enumerate();
        let missed = places.filter(|&(_, &access)| front.misses(access));
        self.walked.extend(missed.map(|(place, _)| place));
        if self.mode == Mode::Shadow {
            let pages = self
                .walked
                .iter()
                .map(|&place| front.page(accesses[place].address()).tag());
            self.exits.hidden_faults += pages.filter(|&page| self.shadowed.insert(page)).count() as u64;
        }
        walkers
            .iter_mut()
            .for_each(|walker| walker.block(accesses, &self.walked));
    }

    fn happens(&mut self, cpu: usize, event: Event) {
        let is_shadow = self.mode == Mode::Shadow;
        match event {
            Event::TableWrite(address) if is_shadow => {
                self.exits.table_writes += 1;
                self.shadowed.remove(&self.cpus[0].front.page(address).tag());
            }
            Event::Invalidate(address) => {
                let others = self.cpus.len() as u64 - 1;
                self.exits.invalidations += u64::from(is_shadow) * (1 + others);
                self.shootdowns += others;
                self.cpus.iter_mut().for_each(|cpu| cpu.front.invalidate(address));
            }
            Event::Switch => {
                self.exits.switches += u64::from(is_shadow);
                self.cpus[cpu].flush();
            }
            Event::TableWrite(_) | Event::Gap => {}
        }
    }
}
