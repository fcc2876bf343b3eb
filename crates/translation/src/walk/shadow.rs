//! Shadow paging: which guest actions leave the guest, counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often the guest was left because the hypervisor keeps shadow page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exits {
    /// Writes to guest page tables, which are write-protected.
    pub table_writes: u64,
    /// First uses of pages that the guest maps but the shadow tables do not yet (hidden faults).
    pub hidden_faults: u64,
    /// Loads of CR3.
    pub switches: u64,
    /// Invalidations of one page (INVLPG).
    pub invalidations: u64,
}

impl Exits {
    /// Those of another stretch as well.
    pub(crate) fn add(&mut self, more: Self) {
        self.table_writes += more.table_writes;
        self.hidden_faults += more.hidden_faults;
        self.switches += more.switches;
        self.invalidations += more.invalidations;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.table_writes + self.hidden_faults + self.switches + self.invalidations
    }
}

/// Pages with an entry in the shadow tables: a bit for each page that has a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadowed {
    regions: Vec<Vec<u64>>,
}

/// Pages of one region: as many as names keep low bits for.
const PAGES: usize = 1 << 16;

impl Shadowed {
    /// Is the page new to the shadow tables? From now on it is in them.
    pub(crate) fn is_new(&mut self, name: u32) -> bool {
        let (word, bit) = self.place(name);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Its entry is gone.
    pub(crate) fn zap(&mut self, name: u32) {
        let (word, bit) = self.place(name);
        *word &= !bit;
    }

    fn place(&mut self, name: u32) -> (&mut u64, u64) {
        let (region, page) = (name as usize / PAGES, name as usize % PAGES);
        if self.regions.len() <= region {
            self.regions.resize(region + 1, Vec::new());
        }
        let bits = &mut self.regions[region];
        bits.resize(PAGES / 64, 0);
        (&mut bits[page / 64], 1 << (page % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::Shadowed;

    #[test]
    fn a_page_faults_once_until_it_is_zapped() {
        let mut shadowed = Shadowed::default();
        for name in [65_536, 65_537, 9 << 16] {
            assert_eq!([shadowed.is_new(name), shadowed.is_new(name)], [true, false]);
        }
        shadowed.zap(65_537);
        assert_eq!([65_536, 65_537].map(|name| shadowed.is_new(name)), [false, true]);
    }
}
