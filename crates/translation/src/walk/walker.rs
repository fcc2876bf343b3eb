//! The walker: references and where they were found, natively or in two dimensions.

use std::convert::Infallible;

use crate::keep::Kept;
use crate::tlb::layout::{Backing, shift};
use crate::walk::caches::{Caches, PLACES, Read};
use crate::walk::nested::{GuestWalks, Nested};
use crate::walk::radix::{Radix, Walk};
use crate::walk::reads::{Block, Miss, Reads, Rest, TABLES};
use crate::walk::spec::WalkerSpec;

/// What walks cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkCounts {
    pub walks: u64,
    /// Entries of the guest's or only page table that were read.
    pub guest_references: u64,
    /// Entries of the host's page table that were read.
    pub host_references: u64,
    /// Where page-table lines were found: caches in order, then memory.
    pub table_lines: [u64; PLACES],
    pub data_lines: [u64; PLACES],
    /// Of those from the second cache, lines that were fetched there from memory, ahead of a stream.
    pub fetched_lines: u64,
}

impl WalkCounts {
    /// Those of another stretch as well.
    pub(crate) fn add(&mut self, more: &Self) {
        self.walks += more.walks;
        self.guest_references += more.guest_references;
        self.host_references += more.host_references;
        self.fetched_lines += more.fetched_lines;
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

/// Walks that are staged together: what they read stays in the caches of the machine that simulates.
const PART: usize = 512;

/// A page walker with everything it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    guest: Radix,
    nested: Nested,
    caches: Option<Caches>,
    with_data: bool,
    pub(crate) counts: WalkCounts,
    stage: Stage,
}

/// What passes from stage to stage.
#[derive(Clone, Debug, Default)]
struct Stage {
    walks: Vec<Walk>,
    first: Vec<u8>,
    reads: Kept<Read>,
}

impl Walker {
    pub(crate) fn new(spec: &WalkerSpec) -> Self {
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            nested: Nested::new(spec),
            caches: (!spec.data_caches.is_empty()).then(|| Caches::new(&spec.data_caches, spec.shared)),
            with_data: spec.with_data && !spec.data_caches.is_empty(),
            counts: WalkCounts::default(),
            stage: Stage::default(),
        }
    }

    /// Data lines are fetched ahead of streams.
    pub(crate) fn fetch_ahead(&mut self) {
        self.caches.iter_mut().for_each(Caches::fetch_ahead);
    }

    /// Makes the walks of a block, and reads its data where data goes through the caches, all in the order of the accesses.
    pub(crate) fn block(&mut self, block: Block) {
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
            let page = if part.nested { backing.guest } else { backing.entry() };
            Walk::new(part.accesses[miss.place as usize].address(), shift(page))
        };
        self.stage.walks.clear();
        self.stage.walks.extend(part.misses.iter().map(walk));
        self.counts.guest_references += self.guest.first_levels(&self.stage.walks, &mut self.stage.first);
        self.counts.walks += part.misses.len() as u64;
    }

    /// The walks of the host's table for those of the guest's, and what both read.
    fn nest(&mut self, part: Block, rest: &mut Rest) {
        let Stage { walks, first, reads } = &mut self.stage;
        let data = self.with_data.then_some(rest);
        let walks = GuestWalks {
            part,
            walks,
            first,
            data,
        };
        self.counts.host_references += self.nested.list(walks, reads);
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
            self.counts.fetched_lines += found.fetched;
            for place in 0..PLACES {
                self.counts.table_lines[place] += found.entries[place];
                self.counts.data_lines[place] += found.data[place];
            }
        }
    }

    /// Forgets the guest's upper levels, as a switch of address spaces without tags does. What translates guest memory stays.
    pub(crate) fn flush(&mut self) {
        self.guest.flush();
    }
}
