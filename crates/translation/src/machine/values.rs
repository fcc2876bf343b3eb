//! The values of a machine, each with where it comes from.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::unknown::Unknown;
use crate::range::Range;

/// A value of a machine, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// What it is.
    pub what: What,
    /// The value; a range where it is swept.
    pub value: Range,
    /// Where it comes from.
    pub from: From,
    /// The result, or the row of the CPU table; empty of what is swept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// A value of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Entries for loads of a page size.
    TlbEntries {
        /// 1 or 2.
        level: u8,
        /// The page size in bytes.
        page: Bytes,
    },
    /// Bytes of a data cache.
    CacheBytes {
        /// From 1.
        level: u8,
    },
    /// Cycles, or entries of the page-walk caches.
    Cost(Unknown),
    /// The core clock in GHz, by which times become cycles.
    CoreClock,
    /// Base pages that follow each other on frames that follow each other, on average.
    FrameRun,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// A measurement on this machine.
    Measured,
    /// The machine's own word: CPUID or sysfs.
    Reported,
    /// The CPU table.
    Table,
    /// It is not known, and swept.
    Swept,
}

impl Value {
    /// One that is known exactly.
    pub(crate) fn exact(what: What, value: f64, from: From, source: &str) -> Self {
        Self {
            what,
            value: Range::exactly(value),
            from,
            source: source.to_owned(),
        }
    }
}
