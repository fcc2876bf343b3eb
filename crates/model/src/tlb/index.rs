//! How a page number chooses its set: the names that results use, and the functions behind them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a page number chooses its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Index {
    /// Its lowest bits.
    Linear,
    /// Its lowest bits XORed with bits above them.
    Xor,
}

/// One function that chooses a set: all but one belong to the family [`Index::Xor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hash {
    /// The lowest bits of the page number.
    Linear,
    /// All bits, folded by XOR into as many as there are lowest ones.
    Fold,
    /// The lowest bits of the page number XORed with its bits from `by`, 2 `by` and so on: `parts` terms in all.
    Shift {
        /// Bits from one term to the next.
        by: u8,
        /// Terms, the page number itself included.
        parts: u8,
    },
}

impl Hash {
    /// The set of a page number among `sets` (a power of two).
    // Called for every page of every probe of every fit: it must not cross a crate's border as a call.
    #[inline]
    pub fn set(self, page: u64, sets: u32) -> u32 {
        let mask = u64::from(sets).saturating_sub(1);
        let bits = mask.count_ones();
        let (by, mut parts) = match self {
            _ if bits == 0 => return 0,
            Self::Linear => return (page & mask) as u32,
            Self::Fold => (bits, u32::MAX),
            Self::Shift { by, parts } => (u32::from(by), u32::from(parts)),
        };
        let (mut rest, mut folded) = (page, 0);
        while rest != 0 && parts > 0 {
            folded ^= rest & mask;
            rest >>= by;
            parts -= 1;
        }
        folded as u32
    }

    /// The name of its family.
    pub fn index(self) -> Index {
        if self == Self::Linear {
            Index::Linear
        } else {
            Index::Xor
        }
    }
}
