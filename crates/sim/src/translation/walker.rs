//! The walker: references and where they were found, natively or in two dimensions.

use super::caches::{Cache, Caches, PLACES};
use super::layout::{Backing, shift};
use super::names::{Names, TooSpread};
use super::radix::{Radix, WalkCaches};
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
const TABLES: u64 = 1 << 52;
/// From one level's tables to the next: more than a level can fill, and an odd number of lines, so that levels do not all begin
/// in the first set of a cache.
const NEXT: u64 = (1 << 45) + 64 * 1021;
/// Host page tables lie beyond the guest's memory.
const HOST: u64 = 1 << 56;

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
}

impl Walker {
    pub(super) fn new(spec: &WalkerSpec) -> Self {
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            host: Radix::new(spec.host_levels, spec.host_caches),
            nested_tlb: (spec.nested_tlb > 0).then(|| Sets::new(1, spec.nested_tlb, Replacement::Lru)),
            names: Names::default(),
            caches: (!spec.data_caches.is_empty()).then(|| Caches::new(&spec.data_caches)),
            with_data: spec.with_data && !spec.data_caches.is_empty(),
            counts: WalkCounts::default(),
        }
    }

    pub(super) fn wants_data(&self) -> bool {
        self.with_data
    }

    /// Reads data; its address stands for the physical one.
    #[inline]
    pub(super) fn data(&mut self, address: u64) {
        if let Some(caches) = &mut self.caches {
            self.counts.data_lines[caches.read(address)] += 1;
        }
    }

    /// Walks one table for an entry of that many address bits: natively, or a shadow page table.
    #[inline]
    pub(super) fn walk(&mut self, address: u64, bits: u32) {
        self.counts.walks += 1;
        let leaf = self.guest.leaf(bits);
        let mut level = self.guest.first_level(address, leaf);
        while level >= leaf {
            self.counts.guest_references += 1;
            self.read(TABLES + NEXT * u64::from(level) + Radix::offset(address, level));
            level -= 1;
        }
    }

    /// Walks both tables: each entry of the guest's lies at a guest-physical address, which the host's table translates.
    ///
    /// # Errors
    /// If more guest memory is touched than can be named.
    #[inline]
    pub(super) fn walk_nested(&mut self, address: u64, guest: u32, host: u32) -> Result<(), TooSpread> {
        self.counts.walks += 1;
        let leaf = self.guest.leaf(guest);
        let mut level = self.guest.first_level(address, leaf);
        while level >= leaf {
            let entry = TABLES + NEXT * u64::from(level) + Radix::offset(address, level);
            self.translate_table(entry, host)?;
            self.counts.guest_references += 1;
            self.read(entry);
            level -= 1;
        }
        self.walk_host(address, host);
        Ok(())
    }

    fn translate_table(&mut self, address: u64, host: u32) -> Result<(), TooSpread> {
        if let Some(tlb) = &mut self.nested_tlb {
            let name = self.names.of(host as u8, address >> host)?;
            if tlb.touch(0, name) {
                return Ok(());
            }
        }
        self.walk_host(address, host);
        Ok(())
    }

    fn walk_host(&mut self, address: u64, host: u32) {
        let leaf = self.host.leaf(host);
        let mut level = self.host.first_level(address, leaf);
        while level >= leaf {
            self.counts.host_references += 1;
            self.read(HOST + NEXT * u64::from(level) + Radix::offset(address, level));
            level -= 1;
        }
    }

    #[inline]
    fn read(&mut self, byte: u64) {
        if let Some(caches) = &mut self.caches {
            self.counts.table_lines[caches.read(byte)] += 1;
        }
    }

    /// Walks as a backing and a mode want it.
    pub(super) fn walk_for(&mut self, address: u64, backing: Backing, nested: bool) -> Result<(), TooSpread> {
        match backing.host {
            Some(host) if nested => self.walk_nested(address, shift(backing.guest), shift(host)),
            _ => {
                self.walk(address, shift(backing.entry()));
                Ok(())
            }
        }
    }

    /// Forgets the guest's upper levels, as a switch of address spaces without tags does. What translates guest memory stays.
    pub(super) fn flush(&mut self) {
        self.guest.flush();
    }
}
