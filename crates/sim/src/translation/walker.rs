//! The walker: references and where they were found, natively or in two dimensions.

use super::access::Access;
use super::agile::Level;
use super::caches::{Cache, Caches, PLACES, Read, Shared};
use super::layout::{Backing, shift};
use super::names::{Names, TooSpread};
use super::radix::{Radix, Walk, WalkCaches};
use super::sets::Sets;
use crate::ways::Replacement;

/// What a walker is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkerSpec {
    /// Levels of the guest's table, or of the only one: 4 or 5.
    pub levels: u8,
    /// Levels of the host's table.
    pub host_levels: u8,
    /// Page-walk caches of the guest's or only dimension.
    pub caches: WalkCaches,
    /// Those of the host's dimension.
    pub host_caches: WalkCaches,
    /// Entries that translate guest page tables' addresses to host ones, fully associative under LRU.
    pub nested_tlb: u32,
    /// Data caches that page-table lines go through, from the first level on; none counts references only.
    pub data_caches: Vec<Cache>,
    /// Do data lines go through them, too?
    pub with_data: bool,
    /// How the third cache is filled.
    pub shared: Shared,
}

/// What walks cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkCounts {
    /// Walks.
    pub walks: u64,
    /// Entries of the guest's or only page table that were read.
    pub guest_references: u64,
    /// Entries of the host's page table that were read.
    pub host_references: u64,
    /// Where page-table lines were found: caches in order, then memory.
    pub table_lines: [u64; PLACES],
    /// Where data lines were found.
    pub data_lines: [u64; PLACES],
}

impl WalkCounts {
    /// Those of another stretch as well.
    pub(super) fn add(&mut self, more: &Self) {
        self.walks += more.walks;
        self.guest_references += more.guest_references;
        self.host_references += more.host_references;
        for place in 0..PLACES {
            self.table_lines[place] += more.table_lines[place];
            self.data_lines[place] += more.data_lines[place];
        }
    }

    /// All entries that were read.
    pub fn references(&self) -> u64 {
        self.guest_references + self.host_references
    }
}

/// Guest page tables lie here in guest-physical memory, one level after the other, beyond all data.
pub(super) const TABLES: u64 = 1 << 52;
/// From one level's tables to the next: more than a level can fill, and an odd number of lines, so that levels do not all begin
/// in the first set of a cache.
pub(super) const NEXT: u64 = (1 << 45) + 64 * 1021;
/// Host page tables lie beyond the guest's memory.
pub(super) const HOST: u64 = 1 << 56;

/// The shadow table of agile paging lies beyond those.
const SHADOW: u64 = 1 << 57;

/// Of a walk in two dimensions: every level is nested, the root's table included.
pub(super) const ALL_LEVELS: u8 = u8::MAX;

/// Walks that are staged together: what they read stays in the caches of the machine that simulates.
const PART: usize = 512;

/// A page walker with everything it remembers.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    guest: Radix,
    host: Radix,
    nested_tlb: Option<Sets>,
    names: Names,
    caches: Option<Caches>,
    with_data: bool,
    pub(super) counts: WalkCounts,
    stage: Stage,
}

/// What passes from stage to stage.
#[derive(Clone, Debug, Default)]
struct Stage {
    walks: Vec<Walk>,
    first: Vec<u8>,
    steps: Vec<Step>,
    host_walks: Vec<Walk>,
    host_first: Vec<u8>,
    reads: Vec<Read>,
}

/// An access that no TLB level holds: its place in the block, and the number of what backs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    pub(super) place: u32,
    pub(super) class: u8,
    /// From which level on it is walked in two dimensions: 0 not at all, [`ALL_LEVELS`] all the way.
    pub(super) nested_from: u8,
}

/// A block of accesses, those of them that are walked, and what backs them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) accesses: &'a [Access],
    pub(super) misses: &'a [Miss],
    pub(super) backings: &'a [Backing],
    /// Is any of them walked in two dimensions?
    pub(super) nested: bool,
}

/// What a walk in two dimensions does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads data.
    Data(u64),
    /// Reads an entry of a guest's table that the host translates by pages of so many bits.
    Entry(u64, Option<u32>),
    /// The same, but the nested TLB or an entry of the shadow table knows where that table is.
    Known(u64),
    /// Translates the address itself.
    Page(u64, u32),
}

impl Walker {
    pub(super) fn new(spec: &WalkerSpec) -> Self {
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            host: Radix::new(spec.host_levels, spec.host_caches),
            nested_tlb: (spec.nested_tlb > 0).then(|| Sets::new(1, spec.nested_tlb, Replacement::Lru)),
            names: Names::default(),
            caches: (!spec.data_caches.is_empty()).then(|| Caches::new(&spec.data_caches, spec.shared)),
            with_data: spec.with_data && !spec.data_caches.is_empty(),
            counts: WalkCounts::default(),
            stage: Stage::default(),
        }
    }

    /// Makes the walks of a block, and reads its data where data goes through the caches, all in the order of the accesses.
    ///
    /// # Errors
    /// If more guest memory is touched than can be named.
    pub(super) fn block(&mut self, block: Block) -> Result<(), TooSpread> {
        if self.caches.is_none() && !block.nested && !self.guest.has_caches() {
            self.count_whole_walks(block);
            return Ok(());
        }
        let accesses = block.accesses;
        let mut rest = Rest { accesses, from: 0 };
        for misses in block.misses.chunks(PART) {
            let part = Block { misses, ..block };
            self.begin(part);
            if block.nested {
                self.steps_in_two_dimensions(part, &mut rest);
                self.translate_tables()?;
                self.read_both_tables();
            } else {
                self.read_one_table(part, &mut rest);
            }
            self.read();
        }
        if self.with_data {
            self.stage.reads.extend(rest.until(accesses.len()).map(Read::data));
            self.read();
        }
        Ok(())
    }

    /// Walks that read every level, whose lines go through no cache.
    fn count_whole_walks(&mut self, block: Block) {
        let levels = |backing: &Backing| {
            let walk = Walk::new(0, shift(backing.entry()));
            walk.levels(self.guest.levels()).len() as u64
        };
        let levels: Vec<u64> = block.backings.iter().map(levels).collect();
        let read = block.misses.iter().map(|miss| levels[usize::from(miss.class)]);
        self.counts.guest_references += read.sum::<u64>();
        self.counts.walks += block.misses.len() as u64;
    }

    /// Finds where the walks begin, in the guest's table or in the only one.
    fn begin(&mut self, part: Block) {
        let walk = |miss: &Miss| {
            let backing = part.backings[usize::from(miss.class)];
            let is_nested = miss.nested_from > 0;
            let page = if is_nested { backing.guest } else { backing.entry() };
            Walk::new(part.accesses[miss.place as usize].address(), shift(page))
        };
        self.stage.walks.clear();
        self.stage.walks.extend(part.misses.iter().map(walk));
        self.guest.first_levels(&self.stage.walks, &mut self.stage.first);
        self.counts.walks += part.misses.len() as u64;
        let read = self.stage.walks.iter().zip(&self.stage.first);
        self.counts.guest_references += read.map(|(walk, &first)| walk.levels(first).len() as u64).sum::<u64>();
    }

    /// Natively, or of a shadow page table.
    fn read_one_table(&mut self, part: Block, rest: &mut Rest) {
        if self.caches.is_none() {
            return;
        }
        let Stage {
            walks, first, reads, ..
        } = &mut self.stage;
        for ((walk, &first), miss) in walks.iter().zip(&*first).zip(part.misses) {
            if self.with_data {
                reads.extend(rest.until(miss.place as usize).map(Read::data));
            }
            reads.extend(entries(TABLES, *walk, first).map(Read::entry));
        }
    }

    /// Each entry of the guest's table lies at a guest-physical address, which the host's table translates.
    fn steps_in_two_dimensions(&mut self, part: Block, rest: &mut Rest) {
        let Stage {
            walks, first, steps, ..
        } = &mut self.stage;
        steps.clear();
        for ((walk, &first), miss) in walks.iter().zip(&*first).zip(part.misses) {
            if self.with_data {
                steps.extend(rest.until(miss.place as usize).map(Step::Data));
            }
            let host = part.backings[usize::from(miss.class)].host.map(shift);
            if miss.nested_from == ALL_LEVELS {
                steps.extend(entries(TABLES, *walk, first).map(|entry| Step::Entry(entry, host)));
            } else {
                steps.extend(
                    walk.levels(first)
                        .map(|level| step(*walk, level, miss.nested_from, host)),
                );
            }
            let host = host.filter(|_| miss.nested_from > 0);
            steps.extend(host.map(|host| Step::Page(walk.address, host)));
        }
    }

    /// Asks the nested TLB for the guest's tables, and finds where walks of the host's table begin for all others.
    fn translate_tables(&mut self) -> Result<(), TooSpread> {
        let Stage {
            steps,
            host_walks,
            host_first,
            ..
        } = &mut self.stage;
        host_walks.clear();
        for step in steps {
            match *step {
                Step::Entry(entry, Some(host)) => {
                    let known = match &mut self.nested_tlb {
                        Some(tlb) => tlb.touch(0, self.names.of(host as u8, entry >> host)?),
                        None => false,
                    };
                    if known {
                        *step = Step::Known(entry);
                    } else {
                        host_walks.push(Walk::new(entry, host));
                    }
                }
                Step::Page(address, host) => host_walks.push(Walk::new(address, host)),
                Step::Entry(_, None) | Step::Known(_) | Step::Data(_) => {}
            }
        }
        self.host.first_levels(host_walks, host_first);
        let read = host_walks.iter().zip(&*host_first);
        self.counts.host_references += read.map(|(walk, &first)| walk.levels(first).len() as u64).sum::<u64>();
        Ok(())
    }

    fn read_both_tables(&mut self) {
        if self.caches.is_none() {
            return;
        }
        let Stage {
            steps,
            host_walks,
            host_first,
            reads,
            ..
        } = &mut self.stage;
        let mut host_walks = host_walks.iter().zip(&*host_first);
        let mut host_entries = move || {
            let walk = host_walks.next();
            walk.into_iter()
                .flat_map(|(walk, &first)| entries(HOST, *walk, first))
                .map(Read::entry)
        };
        for step in &*steps {
            match *step {
                Step::Data(address) => reads.push(Read::data(address)),
                Step::Entry(entry, Some(_)) => {
                    reads.extend(host_entries());
                    reads.push(Read::entry(entry));
                }
                Step::Entry(entry, None) | Step::Known(entry) => reads.push(Read::entry(entry)),
                Step::Page(..) => reads.extend(host_entries()),
            }
        }
    }

    fn read(&mut self) {
        if let Some(caches) = &mut self.caches {
            let found = caches.read(&self.stage.reads);
            for place in 0..PLACES {
                self.counts.table_lines[place] += found.entries[place];
                self.counts.data_lines[place] += found.data[place];
            }
            self.stage.reads.clear();
        }
    }

    /// Forgets the guest's upper levels, as a switch of address spaces without tags does. What translates guest memory stays.
    pub(super) fn flush(&mut self) {
        self.guest.flush();
    }
}

/// The accesses of a block whose data was not read yet.
struct Rest<'a> {
    accesses: &'a [Access],
    from: usize,
}

impl<'a> Rest<'a> {
    /// The addresses of those before a place, which stand for physical ones.
    fn until(&mut self, place: usize) -> impl Iterator<Item = u64> + use<'a> {
        let accesses = &self.accesses[self.from..place];
        self.from = place;
        accesses.iter().map(|access| access.address())
    }
}

/// How a walk of agile paging reads one level.
fn step(walk: Walk, level: u8, nested_from: u8, host: Option<u32>) -> Step {
    let offset = NEXT * u64::from(level) + walk.offset(level);
    match Level::of(level, nested_from) {
        Level::Shadow => Step::Entry(SHADOW + offset, None),
        Level::Switch => Step::Known(TABLES + offset),
        Level::Nested => Step::Entry(TABLES + offset, host),
    }
}

/// Addresses of the entries that a walk reads in tables from `tables` on, if it begins at a level.
#[inline]
fn entries(tables: u64, walk: Walk, first: u8) -> impl Iterator<Item = u64> {
    walk.levels(first)
        .map(move |level| tables + NEXT * u64::from(level) + walk.offset(level))
}
