//! Runs accesses through TLBs and walkers, and counts what happens.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use crate::tlb::front::{BLOCK, Front, LevelCounts};
use crate::tlb::layout::{Layout, shift};
use crate::tlb::level::Array;
use crate::tlb::names::TooSpread;
use crate::walk::radix::Walk;
use crate::walk::reads::{Block, Miss};
use crate::walk::shadow::{Exits, Shadowed};
use crate::walk::spec::WalkerSpec;
use crate::walk::walker::{WalkCounts, Walker};
use model::names;

/// Who translates, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No hypervisor.
    Native,
    /// EPT or NPT: two page tables, walked in two dimensions.
    Nested,
    /// The hypervisor keeps page tables that map the guest's addresses to memory.
    Shadow,
}

names!(Mode, "a mode", {
    Native => "native", Nested => "nested", Shadow => "shadow",
});

/// What a program does to its page tables between accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operating system writes the page-table entry for an address.
    TableWrite {
        /// The address.
        address: u64,
        /// Level of the table: 1 maps base pages. Of levels below that of the address's page that of the page is meant; an entry above
        /// leads to a table that is still or again empty.
        level: u8,
    },
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
    type Error: From<TooSpread>;

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

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The TLBs.
    pub arrays: Vec<Array>,
    /// The page sizes.
    pub layout: Layout,
    /// Who translates.
    pub mode: Mode,
    /// Do entries carry the number of their address space? Then a switch drops nothing.
    pub tagged: bool,
}

/// Everything counted in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses.
    pub accesses: u64,
    /// By TLB level.
    pub levels: Vec<LevelCounts>,
    /// By walker.
    pub walkers: Vec<WalkCounts>,
    /// Exits of shadow paging.
    pub exits: Exits,
    /// Interrupts of other virtual CPUs, which dropped a translation then.
    pub shootdowns: u64,
}

impl Counts {
    /// With one of the walkers alone.
    pub(super) fn with_walker(&self, place: usize) -> Self {
        Self {
            walkers: vec![self.walkers[place]],
            ..self.clone()
        }
    }

    /// First-level TLB misses that another level held.
    pub fn second_level_hits(&self) -> u64 {
        second_level_hits(&self.levels)
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

fn second_level_hits(levels: &[LevelCounts]) -> u64 {
    let behind = levels.iter().skip(1);
    behind.map(|level| level.lookups - level.misses).sum()
}

/// A machine that runs accesses: for each virtual CPU a set of TLBs, and one or more walkers behind it that do not influence each other.
#[derive(Clone, Debug)]
pub struct Engine {
    setup: Setup,
    cpus: Vec<Cpu>,
    shadowed: Shadowed,
    exits: Exits,
    shootdowns: u64,
    accesses: u64,
    block: Vec<Access>,
    misses: Vec<Miss>,
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
            levels: self.front.counts().to_vec(),
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
    pub fn new(setup: Setup, walkers: &[WalkerSpec]) -> Self {
        let cpu = Cpu {
            front: Front::new(&setup.arrays, setup.layout.clone()),
            walkers: walkers.iter().map(Walker::new).collect(),
        };
        Self {
            cpus: vec![cpu],
            shadowed: Shadowed::default(),
            exits: Exits::default(),
            shootdowns: 0,
            accesses: 0,
            block: Vec::with_capacity(BLOCK),
            misses: Vec::new(),
            setup,
        }
    }

    /// The machine with so many virtual CPUs, which share the page tables; at least one.
    #[must_use]
    pub fn with_vcpus(mut self, vcpus: usize) -> Self {
        let cpu = self.cpus[0].clone();
        self.cpus.resize(vcpus.max(1), cpu);
        self
    }

    /// The machine with caches that fetch data lines ahead of streams.
    #[must_use]
    pub fn fetching_ahead(mut self) -> Self {
        for cpu in &mut self.cpus {
            cpu.walkers.iter_mut().for_each(Walker::fetch_ahead);
        }
        self
    }

    /// Runs so many accesses, or all that there are. What the last block has beyond them is left out.
    ///
    /// # Errors
    /// As the source of the accesses; or if they touch more memory than can be named.
    pub fn run<A: Accesses>(&mut self, accesses: &mut A, most: u64) -> Result<(), A::Error> {
        let end = self.accesses.saturating_add(most);
        while self.accesses < end {
            let mut block = std::mem::take(&mut self.block);
            block.clear();
            let event = accesses.fill(&mut block)?;
            block.truncate((end - self.accesses).try_into().unwrap_or(usize::MAX));
            if block.is_empty() && event.is_none() {
                self.block = block;
                break;
            }
            let cpu = accesses.vcpu() % self.cpus.len();
            self.run_block(cpu, &block)?;
            self.block = block;
            if let Some(event) = event {
                self.happens(cpu, event)?;
            }
        }
        Ok(())
    }

    /// Runs accesses that lie in memory, on the first virtual CPU; nothing is copied.
    ///
    /// # Errors
    /// If they touch more memory than can be named.
    pub fn run_stored(&mut self, accesses: &[Access]) -> Result<(), TooSpread> {
        accesses.chunks(BLOCK).try_for_each(|block| self.run_block(0, block))
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

    /// What the first virtual CPU's first walker did since then, and second-level TLB hits: a part of [`Self::counts`] that takes no memory.
    pub fn first_walker(&self) -> (WalkCounts, u64) {
        let Cpu { front, walkers } = &self.cpus[0];
        let walked = walkers.first().map_or_else(WalkCounts::default, |walker| walker.counts);
        (walked, second_level_hits(front.counts()))
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

    fn run_block(&mut self, cpu: usize, part: &[Access]) -> Result<(), TooSpread> {
        self.accesses += part.len() as u64;
        self.cpus[cpu].front.block(part)?;
        if self.setup.mode == Mode::Shadow {
            self.find_hidden_faults(cpu, part)?;
        }
        let miss = |(place, class, _): (usize, u8, u32)| Miss {
            place: place as u32,
            class,
        };
        let Cpu { front, walkers } = &mut self.cpus[cpu];
        if walkers.is_empty() {
            return Ok(());
        }
        self.misses.clear();
        self.misses.extend(front.walks().map(miss));
        let block = Block {
            accesses: part,
            misses: &self.misses,
            backings: self.setup.layout.backings(),
            nested: self.setup.mode == Mode::Nested,
        };
        walkers.iter_mut().for_each(|walker| walker.block(block));
        Ok(())
    }

    /// Pages that are walked and that the shadow table does not have; they have their names by the first virtual CPU.
    fn find_hidden_faults(&mut self, cpu: usize, part: &[Access]) -> Result<(), TooSpread> {
        let (shadowed, faults) = (&mut self.shadowed, &mut self.exits.hidden_faults);
        let (first, others) = self.cpus.split_at_mut(1);
        let Some(other) = cpu.checked_sub(1) else {
            let walks = first[0].front.walks();
            *faults += walks.filter(|&(_, _, name)| shadowed.is_new(name)).count() as u64;
            return Ok(());
        };
        for (place, ..) in others[other].front.walks() {
            let name = first[0].front.name_at(part[place].address())?;
            *faults += u64::from(shadowed.is_new(name));
        }
        Ok(())
    }

    fn happens(&mut self, cpu: usize, event: Event) -> Result<(), TooSpread> {
        match event {
            Event::TableWrite { address, level } => self.write_table(address, level)?,
            Event::Invalidate(address) => {
                let leaves = self.setup.mode == Mode::Shadow;
                let others = self.cpus.len() as u64 - 1;
                self.exits.invalidations += u64::from(leaves) * (1 + others);
                self.shootdowns += others;
                let mut fronts = self.cpus.iter_mut().map(|cpu| &mut cpu.front);
                fronts.try_for_each(|front| front.invalidate(address))?;
            }
            Event::Gap => {}
            Event::Switch => {
                self.exits.switches += u64::from(self.setup.mode == Mode::Shadow);
                if !self.setup.tagged {
                    self.cpus[cpu].flush();
                }
            }
        }
        Ok(())
    }

    fn write_table(&mut self, address: u64, level: u8) -> Result<(), TooSpread> {
        if self.setup.mode != Mode::Shadow {
            return Ok(());
        }
        let layout = &self.setup.layout;
        let backing = layout.backings()[usize::from(layout.class(address))];
        let leaf = Walk::new(address, shift(backing.guest)).leaf;
        self.exits.table_writes += 1;
        if level <= leaf {
            let name = self.cpus[0].front.name_at(address)?;
            self.shadowed.zap(name);
        }
        Ok(())
    }
}
