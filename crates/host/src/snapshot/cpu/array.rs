//! One array of translations: what a TLB is made of.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One array of translations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlbArray {
    /// 1 is next to the core, 2 is the second-level TLB (STLB).
    pub level: u32,
    /// What it translates.
    pub holds: TlbHolds,
    /// The page sizes that share its entries.
    pub pages: Vec<Bytes>,
    /// Number of entries.
    pub entries: u32,
    /// Ways; as many as entries if it is fully associative. 0 if not reported.
    pub ways: u32,
    /// The CPUID leaf that says so, and what it leaves out.
    pub leaf: String,
}

/// What an array translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlbHolds {
    /// Data accesses.
    Data,
    /// Instruction fetches.
    Instruction,
    /// Both.
    Unified,
    /// Loads only.
    Load,
    /// Stores only.
    Store,
}

impl TlbHolds {
    /// Does it translate loads?
    pub fn loads(self) -> bool {
        matches!(self, Self::Data | Self::Unified | Self::Load)
    }
}

pub(super) const KIB4: Bytes = Bytes::kib(4);

pub(super) const MIB2: Bytes = Bytes::mib(2);

pub(super) const MIB4: Bytes = Bytes::mib(4);

pub(super) const GIB1: Bytes = Bytes::gib(1);
