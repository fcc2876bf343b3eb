//! The walker: references and where they were found, natively or in two dimensions.

use crate::access::Access;
use crate::setting::{ByRange, Mode, Setting, shift};
use crate::walk::caches::{Caches, PLACES};
use crate::walk::nested::Nested;
use crate::walk::radix::{Radix, TABLES, Walk, leaf};
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

    fn read_entry(&mut self, caches: &mut Option<Caches>, byte: u64) {
        if let Some(caches) = caches {
            self.table_lines[caches.entry(byte)] += 1;
        }
    }

    /// All entries that were read.
    pub fn references(&self) -> u64 {
        self.guest_references + self.host_references
    }
}

/// A page walker with everything it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    guest: Radix,
    /// The level of the entries that map the guest's pages, or those that both tables together map.
    leaf: ByRange<u8>,
    /// Of walks in two dimensions.
    host: Option<Nested>,
    caches: Option<Caches>,
    pub(crate) counts: WalkCounts,
}

impl Walker {
    /// One with empty caches.
    pub(crate) fn new(spec: &WalkerSpec, setting: Setting) -> Self {
        let is_nested = setting.mode == Mode::Nested;
        let host = setting.host_page.filter(|_| is_nested);
        let page = |setting: Setting| if is_nested { setting.guest_page } else { setting.entry() };
        Self {
            guest: Radix::new(spec.levels, spec.caches),
            leaf: setting.by_range(|setting| leaf(shift(page(setting)))),
            host: host.map(|page| Nested::new(spec, page)),
            caches: (!spec.data_caches.is_empty())
                .then(|| Caches::new(&spec.data_caches, spec.shared, spec.fetches_ahead)),
            counts: WalkCounts::default(),
        }
    }

    /// Reads data, and walks before it for the accesses at some places, all in the order of the accesses.
    pub(crate) fn block(&mut self, accesses: &[Access], walked: &[usize]) {
        if let Some(caches) = &self.caches {
            caches.load_sets(accesses.iter().map(|access| access.address()));
        }
        let mut from = 0;
        for &place in walked {
            self.read_data(&accesses[from..place]);
            self.walk(accesses[place].address());
            from = place;
        }
        self.read_data(&accesses[from..]);
    }

    fn read_data(&mut self, accesses: &[Access]) {
        let Some(caches) = &mut self.caches else { return };
        for access in accesses {
            let (place, was_fetched) = caches.data(access.address());
            self.counts.data_lines[place] += 1;
            self.counts.fetched_lines += u64::from(was_fetched);
        }
    }

    fn walk(&mut self, address: u64) {
        let walk = Walk {
            address,
            leaf: self.leaf.at(address),
        };
        self.counts.walks += 1;
        for level in walk.levels(self.guest.first_level(walk)) {
            let entry = TABLES + walk.offset(level);
            if self.host.as_mut().is_some_and(|host| !host.knows(entry)) {
                self.walk_host(entry);
            }
            self.counts.guest_references += 1;
            self.counts.read_entry(&mut self.caches, entry);
        }
        let is_base = walk.leaf == 1;
        if let Some(host) = &mut self.host {
            let frame = if is_base { host.frame(address) } else { address };
            self.walk_host(frame);
        }
    }

    fn walk_host(&mut self, address: u64) {
        for entry in self.host.iter_mut().flat_map(|host| host.walk(address)) {
            self.counts.host_references += 1;
            self.counts.read_entry(&mut self.caches, entry);
        }
    }

    /// Forgets the guest's upper levels, as a switch of address spaces does. What translates guest memory stays.
    pub(crate) fn flush(&mut self) {
        self.guest.flush();
    }
}
