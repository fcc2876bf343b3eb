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
