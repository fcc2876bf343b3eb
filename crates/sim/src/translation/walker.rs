//! The walker: references and where they were found, natively or in two dimensions.

use fearless_simd::{Simd, dispatch};

use super::access::Access;
use super::agile::Level;
use super::caches::{Cache, Caches, PLACES, Read, Shared};
use super::layout::{Backing, shift};
use super::names::{Names, TooSpread};
use super::radix::{Radix, Walk, WalkCaches};
use super::sets::{Sets, Touch, TouchSet, with_sets};
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

/// The shadow table of agile paging lies between the guest's and the host's.
const SHADOW: u64 = 1 << 54;

/// Of a walk in two dimensions: every level is nested, the root's table included.
pub(super) const ALL_LEVELS: u8 = u8::MAX;

/// Walks that are staged together: what they read stays in the caches of the machine that simulates.
const PART: usize = 512;

/// A page walker with everything it remembers.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    guest: Radix,
    host: Radix,
    nested_tlb: Sets,
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

/// What a walk in two dimensions does next, in one word: an address, the address bits of the page of the host behind it, and how.
#[derive(Clone, Copy, Debug)]
struct Step(u64);

/// The first bit of the host's page size.
const HOST_PAGE: u32 = 56;
/// The first bit of the kind.
const KIND: u32 = 62;

/// What becomes of the address of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Data is read there.
    Data,
    /// An entry of a table is read there; where that table is, the nested TLB or an entry of the shadow table knows.
    Known,
    /// The same, but the host's table translates the address first.
    Entry,
    /// The host's table translates it.
    Page,
}

impl Step {
    #[inline(always)]
    fn new(kind: Kind, address: u64, host: u32) -> Self {
        Self(address | u64::from(host) << HOST_PAGE | (kind as u64) << KIND)
    }

    #[inline(always)]
    fn address(self) -> u64 {
        self.0 & ((1 << HOST_PAGE) - 1)
    }

    #[inline(always)]
    fn host(self) -> u32 {
        (self.0 >> HOST_PAGE) as u32 & 63
    }

    #[inline(always)]
    fn kind(self) -> Kind {
        [Kind::Data, Kind::Known, Kind::Entry, Kind::Page][(self.0 >> KIND) as usize]
    }
}

impl Walker {
    pub(super) fn new(spec: &WalkerSpec) -> Self {
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            host: Radix::new(spec.host_levels, spec.host_caches),
            nested_tlb: Sets::new(1, spec.nested_tlb, Replacement::Lru),
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
            walk.reads(self.guest.levels())
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
        self.counts.guest_references += self.guest.first_levels(&self.stage.walks, &mut self.stage.first);
        self.counts.walks += part.misses.len() as u64;
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
            each_entry(TABLES, *walk, first, |entry| reads.push(Read::entry(entry)));
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
                let data = |address| Step::new(Kind::Data, address, 0);
                steps.extend(rest.until(miss.place as usize).map(data));
            }
            let host = part.backings[usize::from(miss.class)].host.map(shift);
            let bits = host.unwrap_or(0);
            let nested = if host.is_some() { Kind::Entry } else { Kind::Known };
            if miss.nested_from == ALL_LEVELS {
                each_entry(TABLES, *walk, first, |entry| steps.push(Step::new(nested, entry, bits)));
            } else {
                walk.each_read(first, |level, offset| {
                    steps.push(step(level, offset, miss.nested_from, Step::new(nested, 0, bits)));
                });
            }
            if host.is_some() && miss.nested_from > 0 {
                steps.push(Step::new(Kind::Page, walk.address, bits));
            }
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
        let names = &mut self.names;
        dispatch!(fearless_simd::Level::new(), simd => {
            with_sets!(&mut self.nested_tlb, sets => sets.with_set(0, #[inline(always)] |tlb| {
                translate(simd, tlb, names, steps, host_walks)
            }))
        })?;
        self.counts.host_references += self.host.first_levels(host_walks, host_first);
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
        for step in &*steps {
            let kind = step.kind();
            if kind == Kind::Data {
                reads.push(Read::data(step.address()));
                continue;
            }
            if kind != Kind::Known
                && let Some((walk, &first)) = host_walks.next()
            {
                each_entry(HOST, *walk, first, |entry| reads.push(Read::entry(entry)));
            }
            if kind != Kind::Page {
                reads.push(Read::entry(step.address()));
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

/// How a walk of agile paging reads one level; `nested` is a step of a level that the host translates, without its address.
fn step(level: u8, offset: u64, nested_from: u8, nested: Step) -> Step {
    let offset = NEXT * u64::from(level) + offset;
    match Level::of(level, nested_from) {
        Level::Shadow => Step::new(Kind::Known, SHADOW + offset, 0),
        Level::Switch => Step::new(Kind::Known, TABLES + offset, 0),
        Level::Nested => Step::new(nested.kind(), TABLES + offset, nested.host()),
    }
}

/// Calls with the address of each entry that a walk reads in tables from `tables` on, if it begins at a level.
#[inline(always)]
fn each_entry(tables: u64, walk: Walk, first: u8, mut read: impl FnMut(u64)) {
    walk.each_read(first, |level, offset| read(tables + NEXT * u64::from(level) + offset));
}

/// Asks the nested TLB for the tables that steps read, and lists the walks of the host's table.
#[inline(always)]
fn translate<S: Simd>(
    simd: S,
    tlb: &mut impl TouchSet,
    names: &mut Names,
    steps: &mut [Step],
    host_walks: &mut Vec<Walk>,
) -> Result<(), TooSpread> {
    host_walks.clear();
    for step in steps {
        let (kind, address, host) = (step.kind(), step.address(), step.host());
        if kind == Kind::Entry && tlb.touch(simd, names.of(host as u8, address >> host)?) {
            *step = Step::new(Kind::Known, address, host);
        } else if matches!(kind, Kind::Entry | Kind::Page) {
            host_walks.push(Walk::new(address, host));
        }
    }
    Ok(())
}
