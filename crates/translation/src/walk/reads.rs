//! What both dimensions of walks share: the accesses of a block that are walked, where tables lie, and the reads as they are listed.

use crate::access::Access;
use crate::tlb::layout::Backing;
use crate::walk::caches::Read;
use crate::walk::radix::Walk;

/// Guest page tables lie here in guest-physical memory, one level after the other, beyond all data.
pub(crate) const TABLES: u64 = 1 << 52;

/// An access that no TLB level holds: its place in the block, and the number of what backs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    pub(crate) place: u32,
    pub(crate) class: u8,
}

/// A block of accesses, those of them that are walked, and what backs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) accesses: &'a [Access],
    pub(crate) misses: &'a [Miss],
    pub(crate) backings: &'a [Backing],
    /// Are they walked in two dimensions?
    pub(crate) nested: bool,
}

/// The accesses of a block whose data was not read yet.
pub(crate) struct Rest<'a> {
    pub(crate) accesses: &'a [Access],
    pub(crate) from: usize,
}

impl<'a> Rest<'a> {
    pub(crate) fn left(&self) -> usize {
        self.accesses.len() - self.from
    }

    /// The addresses of those before a place, which stand for physical ones.
    pub(crate) fn until(&mut self, place: usize) -> impl Iterator<Item = u64> + use<'a> {
        let accesses = &self.accesses[self.from..place];
        self.from = place;
        accesses.iter().map(|access| access.address())
    }
}

pub(crate) struct Reads<'a> {
    pub(crate) room: &'a mut [Read],
    pub(crate) count: usize,
}

impl Reads<'_> {
    /// Room behind the last read.
    pub(crate) const SLACK: usize = 2;

    #[inline(always)]
    pub(crate) fn push(&mut self, read: Read) {
        self.room[self.count] = read;
        self.count += 1;
    }

    #[inline(always)]
    pub(crate) fn data(&mut self, addresses: impl Iterator<Item = u64>) {
        addresses.for_each(|address| self.push(Read::data(address)));
    }

    /// The same as [`Self::entries`], with branches: where the level has just been found by others that decide the same.
    #[inline(always)]
    pub(crate) fn known_entries(&mut self, tables: u64, walk: Walk, first: u8) {
        if first == walk.leaf {
            self.push(Read::entry(tables + walk.offset(first)));
        } else {
            self.entries(tables, walk, first);
        }
    }

    /// The entries that a walk reads in tables from `tables` on, if it begins at a level.
    #[inline(always)]
    pub(crate) fn entries(&mut self, tables: u64, walk: Walk, first: u8) {
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
