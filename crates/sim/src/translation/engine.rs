//! Runs accesses through TLBs and walkers, and counts what happens.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::front::{BLOCK, Front, LevelCounts};
use super::layout::Layout;
use super::level::Array;
use super::names::TooSpread;
use super::shadow::{Exits, Shadowed};
use super::walker::{Block, Miss, WalkCounts, Walker, WalkerSpec};

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

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Nested => "nested",
            Self::Shadow => "shadow",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Native, Self::Nested, Self::Shadow];
        let known = known.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| format!("`{text}` is no mode (write native, nested or shadow)"))
    }
}

/// What a program does to its page tables between accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operating system writes the page-table entry for an address.
    TableWrite(u64),
    /// It drops the translation of an address (INVLPG).
    Invalidate(u64),
    /// It switches to another address space.
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
}

impl Counts {
    /// First-level TLB misses that another level held.
    pub fn second_level_hits(&self) -> u64 {
        let behind = self.levels.iter().skip(1);
        behind.map(|level| level.lookups - level.misses).sum()
    }
}

/// A machine that runs accesses: one set of TLBs, and one or more walkers behind it that do not influence each other.
#[derive(Clone, Debug)]
pub struct Engine {
    setup: Setup,
    front: Front,
    walkers: Vec<Walker>,
    shadowed: Shadowed,
    exits: Exits,
    accesses: u64,
    block: Vec<Access>,
    misses: Vec<Miss>,
}

impl Engine {
    /// A cold machine.
    pub fn new(setup: Setup, walkers: &[WalkerSpec]) -> Self {
        Self {
            front: Front::new(&setup.arrays, setup.layout.clone()),
            walkers: walkers.iter().map(Walker::new).collect(),
            shadowed: Shadowed::default(),
            exits: Exits::default(),
            accesses: 0,
            block: Vec::with_capacity(BLOCK),
            misses: Vec::new(),
            setup,
        }
    }

    /// Runs so many accesses, or all that there are; the last block is run whole.
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
            self.block = block;
            if self.block.is_empty() && event.is_none() {
                break;
            }
            self.run_block()?;
            if let Some(event) = event {
                self.happens(event)?;
            }
        }
        Ok(())
    }

    /// What was counted since the last call of [`Self::reset_counts`].
    pub fn counts(&self) -> Counts {
        Counts {
            accesses: self.accesses,
            levels: self.front.counts().to_vec(),
            walkers: self.walkers.iter().map(|walker| walker.counts).collect(),
            exits: self.exits,
        }
    }

    /// Begins to count anew; everything stays as warm as it is.
    pub fn reset_counts(&mut self) {
        self.accesses = 0;
        self.front.reset_counts();
        self.exits = Exits::default();
        self.walkers
            .iter_mut()
            .for_each(|walker| walker.counts = WalkCounts::default());
    }

    /// Empties the TLBs and what walkers know of the guest's upper levels.
    pub fn flush(&mut self) {
        self.front.flush();
        self.walkers.iter_mut().for_each(Walker::flush);
    }

    fn run_block(&mut self) -> Result<(), TooSpread> {
        self.accesses += self.block.len() as u64;
        self.front.block(&self.block)?;
        if self.setup.mode == Mode::Shadow {
            let shadowed = &mut self.shadowed;
            self.exits.hidden_faults += self.front.walks().filter(|&(_, _, name)| shadowed.is_new(name)).count() as u64;
        }
        if self.walkers.is_empty() {
            return Ok(());
        }
        let miss = |(place, class, _): (usize, u8, u32)| Miss {
            place: place as u32,
            class,
        };
        self.misses.clear();
        self.misses.extend(self.front.walks().map(miss));
        let block = Block {
            accesses: &self.block,
            misses: &self.misses,
            backings: self.setup.layout.backings(),
            nested: self.setup.mode == Mode::Nested,
        };
        self.walkers.iter_mut().try_for_each(|walker| walker.block(block))
    }

    fn happens(&mut self, event: Event) -> Result<(), TooSpread> {
        let shadow = self.setup.mode == Mode::Shadow;
        match event {
            Event::TableWrite(address) => {
                if shadow {
                    self.exits.table_writes += 1;
                    let name = self.front.name_at(address)?;
                    self.shadowed.zap(name);
                }
            }
            Event::Invalidate(address) => {
                self.exits.invalidations += u64::from(shadow);
                self.front.invalidate(address)?;
            }
            Event::Gap => {}
            Event::Switch => {
                self.exits.switches += u64::from(shadow);
                if !self.setup.tagged {
                    self.flush();
                }
            }
        }
        Ok(())
    }
}
