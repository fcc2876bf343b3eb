//! The walker: references and where they were found, natively or in two dimensions.

use std::convert::Infallible;

use super::access::Access;
use super::caches::{Cache, Caches, PLACES, Read, Shared};
use super::keep::Kept;
use super::layout::{Backing, shift};
use super::nested::{GuestWalks, Nested};
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

/// Of a walk in two dimensions: every level is nested, the root's table included.
pub(super) const ALL_LEVELS: u8 = u8::MAX;

/// Walks that are staged together: what they read stays in the caches of the machine that simulates.
const PART: usize = 512;

/// A page walker with everything it remembers.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    guest: Radix,
    nested: Nested,
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

impl Walker {
    pub(super) fn new(spec: &WalkerSpec) -> Self {
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            nested: Nested::new(spec),
            caches: (!spec.data_caches.is_empty()).then(|| Caches::new(&spec.data_caches, spec.shared)),
            with_data: spec.with_data && !spec.data_caches.is_empty(),
            counts: WalkCounts::default(),
            stage: Stage::default(),
        }
    }

    /// Makes the walks of a block, and reads its data where data goes through the caches, all in the order of the accesses.
    pub(super) fn block(&mut self, block: Block) {
        if self.caches.is_none() && !block.nested && !self.guest.has_caches() {
            self.count_whole_walks(block);
            return;
        }
        let accesses = block.accesses;
        let mut rest = Rest { accesses, from: 0 };
        for misses in block.misses.chunks(PART) {
            let part = Block { misses, ..block };
            self.begin(part);
            if block.nested {
                self.nest(part, &mut rest);
            } else if self.caches.is_some() {
                self.list_reads(part, &mut rest);
            }
            self.read();
        }
        if self.with_data {
            let rest = rest.until(accesses.len()).map(Read::data);
            self.stage.reads.fill_with(rest);
            self.read();
        }
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

    /// The walks of the host's table for those of the guest's, and what both read, if that goes through the caches.
    fn nest(&mut self, part: Block, rest: &mut Rest) {
        let Stage { walks, first, reads } = &mut self.stage;
        let data = self.with_data.then_some(rest);
        let walks = GuestWalks {
            part,
            walks,
            first,
            data,
        };
        self.counts.host_references += self.nested.translate(walks);
        if self.caches.is_some() {
            self.nested.list(reads);
        }
    }

    /// Lists what the walks read, and the data between them where it goes through the caches.
    fn list_reads(&mut self, part: Block, rest: &mut Rest) {
        let with_data = self.with_data;
        let Stage { walks, first, reads } = &mut self.stage;
        let data = if with_data { rest.left() } else { 0 };
        let most = data + walks.len() * usize::from(self.guest.levels()) + Reads::SLACK;
        let filled = reads.refill(most, Read::entry(0), |room| {
            let mut reads = Reads { room, count: 0 };
            for ((&walk, &first), miss) in walks.iter().zip(&*first).zip(part.misses) {
                if with_data {
                    reads.data(rest.until(miss.place as usize));
                }
                reads.entries(TABLES, walk, first);
            }
            Ok::<_, Infallible>(reads.count)
        });
        let Ok(()) = filled;
    }

    fn read(&mut self) {
        if let Some(caches) = &mut self.caches {
            let found = caches.read(&mut self.stage.reads, self.with_data);
            for place in 0..PLACES {
                self.counts.table_lines[place] += found.entries[place];
                self.counts.data_lines[place] += found.data[place];
            }
        }
    }

    /// Forgets the guest's upper levels, as a switch of address spaces without tags does. What translates guest memory stays.
    pub(super) fn flush(&mut self) {
        self.guest.flush();
    }
}

/// The accesses of a block whose data was not read yet.
pub(super) struct Rest<'a> {
    accesses: &'a [Access],
    from: usize,
}

impl<'a> Rest<'a> {
    pub(super) fn left(&self) -> usize {
        self.accesses.len() - self.from
    }

    /// The addresses of those before a place, which stand for physical ones.
    pub(super) fn until(&mut self, place: usize) -> impl Iterator<Item = u64> + use<'a> {
        let accesses = &self.accesses[self.from..place];
        self.from = place;
        accesses.iter().map(|access| access.address())
    }
}

/// Reads as they are listed.
pub(super) struct Reads<'a> {
    pub(super) room: &'a mut [Read],
    pub(super) count: usize,
}

impl Reads<'_> {
    /// Room behind the last read.
    pub(super) const SLACK: usize = 2;

    #[inline(always)]
    pub(super) fn push(&mut self, read: Read) {
        self.room[self.count] = read;
        self.count += 1;
    }

    #[inline(always)]
    pub(super) fn data(&mut self, addresses: impl Iterator<Item = u64>) {
        addresses.for_each(|address| self.push(Read::data(address)));
    }

    /// So many others; most often two at most, as in [`Self::entries`], and so [`Self::SLACK`] more must stand behind them.
    #[inline(always)]
    pub(super) fn copy(&mut self, reads: &[Read], count: usize) {
        let room = &mut self.room[self.count..];
        (room[0], room[1]) = (reads[0], reads[1]);
        if count > 2 {
            room[2..count].copy_from_slice(&reads[2..count]);
        }
        self.count += count;
    }

    /// The entries that a walk reads in tables from `tables` on, if it begins at a level.
    #[inline(always)]
    pub(super) fn entries(&mut self, tables: u64, walk: Walk, first: u8) {
        let count = walk.reads(first) as usize;
        let entry = |level: u8| Read::entry(tables + walk.offset(level));
        // Most walks read one entry or two: both are written without a branch, and the next ones overwrite what is too much.
        self.room[self.count] = entry(first);
        self.room[self.count + 1] = entry(first.saturating_sub(1));
        for more in 2..count {
            self.room[self.count + more] = entry(first - more as u8);
        }
        self.count += count;
    }
}
