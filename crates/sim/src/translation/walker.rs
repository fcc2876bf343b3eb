//! The walker: references and where they were found, natively or in two dimensions.

use super::access::Access;
use super::agile::Level;
use super::caches::{Cache, Caches, PLACES, Read, Shared};
use super::keep::Kept;
use super::layout::{Backing, shift};
use super::named::Named;
use super::names::{Names, TooSpread};
use super::radix::{Radix, Walk, WalkCaches};

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
    nested_tlb: Named,
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
    steps: Kept<Step>,
    host_walks: Kept<Walk>,
    host_first: Vec<u8>,
    reads: Kept<Read>,
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

/// What a walk in two dimensions does next, in one word: an address, and how.
#[derive(Clone, Copy, Debug)]
struct Step(u64);

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
    const ANY: Self = Self(0);

    #[inline(always)]
    fn new(kind: Kind, address: u64) -> Self {
        Self(address | (kind as u64) << KIND)
    }

    #[inline(always)]
    fn address(self) -> u64 {
        self.0 & ((1 << KIND) - 1)
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
            nested_tlb: Named::new(spec.nested_tlb),
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
                self.steps_in_two_dimensions(part, &mut rest)?;
                self.read_both_tables();
            } else {
                self.read_one_table(part, &mut rest);
            }
            self.read();
        }
        if self.with_data {
            self.stage.reads.fill_with(rest.until(accesses.len()).map(Read::data));
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
        let most = rest.most(part.misses, self.guest.levels());
        let mut reads = reads.filling(most, Read::entry(0));
        for ((walk, &first), miss) in walks.iter().zip(&*first).zip(part.misses) {
            if self.with_data {
                rest.until(miss.place as usize)
                    .for_each(|address| reads.push(Read::data(address)));
            }
            walk.list(first, &mut reads, |level| Read::entry(entry(TABLES, *walk, level)));
        }
    }

    /// Each entry of the guest's table lies at a guest-physical address. The nested TLB knows where that is, or the host's table is walked, as it is for
    /// the page itself.
    fn steps_in_two_dimensions(&mut self, part: Block, rest: &mut Rest) -> Result<(), TooSpread> {
        let Stage {
            walks,
            first,
            steps,
            host_walks,
            host_first,
            ..
        } = &mut self.stage;
        // Behind a walk's entries is its page.
        let most = rest.most(part.misses, self.guest.levels() + 1);
        let (mut step, mut host_walk) = (
            steps.filling(most, Step::ANY),
            host_walks.filling(most, Walk::new(0, 0)),
        );
        for ((walk, &first), miss) in walks.iter().zip(&*first).zip(part.misses) {
            if self.with_data {
                rest.until(miss.place as usize)
                    .for_each(|address| step.push(Step::new(Kind::Data, address)));
            }
            let host = part.backings[usize::from(miss.class)].host.map(shift);
            for level in (walk.leaf()..=first).rev() {
                let (table, is_nested) = table(level, miss.nested_from);
                let address = entry(table, *walk, level);
                let is_known = match host.filter(|_| is_nested) {
                    Some(bits) => self.nested_tlb.touch(self.names.of(bits as u8, address >> bits)?),
                    None => true,
                };
                // Written in any case: which tables are known has no pattern that a branch could learn.
                step.push(Step::new([Kind::Entry, Kind::Known][usize::from(is_known)], address));
                host_walk.push_if(!is_known, Walk::new(address, host.unwrap_or(0)));
            }
            if let Some(bits) = host.filter(|_| miss.nested_from > 0) {
                step.push(Step::new(Kind::Page, walk.address()));
                host_walk.push(Walk::new(walk.address(), bits));
            }
        }
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
        let most = steps.len() * usize::from(1 + self.host.levels());
        let mut reads = reads.filling(most, Read::entry(0));
        let mut number = 0;
        for step in &**steps {
            let kind = step.kind();
            if kind == Kind::Data {
                reads.push(Read::data(step.address()));
                continue;
            }
            // Whose table is known has no walk; it is looked at like one that reads nothing, without a branch that has nothing to learn.
            let is_walked = kind != Kind::Known;
            let (walk, first) = match host_walks.get(number).zip(host_first.get(number)) {
                Some((&walk, &first)) => (walk, if is_walked { first } else { 0 }),
                None => (Walk::new(0, 0), 0),
            };
            walk.list(first, &mut reads, |level| Read::entry(entry(HOST, walk, level)));
            number += usize::from(is_walked);
            reads.push_if(kind != Kind::Page, Read::entry(step.address()));
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

    /// The room that they need up to the last one of some misses, with so many things for each miss.
    fn most(&self, misses: &[Miss], each: u8) -> usize {
        let last = misses.last().map_or(self.from, |miss| miss.place as usize);
        last - self.from.min(last) + misses.len() * usize::from(each)
    }
}

/// Which tables a walk reads at a level, if it is walked in two dimensions from another one on; and does the host translate where they are?
#[inline(always)]
fn table(level: u8, nested_from: u8) -> (u64, bool) {
    if nested_from == ALL_LEVELS {
        return (TABLES, true);
    }
    match Level::of(level, nested_from) {
        Level::Shadow => (SHADOW, false),
        Level::Switch => (TABLES, false),
        Level::Nested => (TABLES, true),
    }
}

/// The address of the entry that a walk reads at a level, in tables from `tables` on.
#[inline(always)]
fn entry(tables: u64, walk: Walk, level: u8) -> u64 {
    tables + NEXT * u64::from(level) + walk.offset(level)
}
