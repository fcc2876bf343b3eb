//! The shape of a TLB discovery: levels, walk costs, what is shared, and what backs the machine's memory underneath.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Estimate, PageKind, Warning};

mod backing;
mod built;
mod index;

pub use backing::{HostBacking, Verdict};
pub use built::built;
pub use index::{Hash, Index};

/// Everything that timing shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tlb {
    /// TLB levels by page kind, in the order measured; first levels first.
    pub levels: Vec<Level>,
    /// What a page-table walk costs, by where the page-table entries are.
    pub walks: Vec<Walk>,
    /// Which pairs of kinds use the same entries.
    pub sharing: Vec<Sharing>,
    /// What the host seems to back this machine's huge pages with.
    pub host_backing: HostBacking,
    /// What CPUID and the CPU table say, to compare with.
    pub known: Vec<Known>,
    /// How pages were laid out in memory, by kind.
    pub memory: Vec<Memory>,
    /// Cost against pages touched: the curves behind the levels.
    pub curves: Vec<CurvePoint>,
    /// Core clock over the run in GHz.
    pub core_ghz: Option<Estimate>,
    /// The CPU the timed thread was pinned to.
    pub cpu: u32,
    /// Timed groups of blocks that were thrown away because the core clock changed.
    pub dropped: u64,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// One TLB level as one page kind sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Page kind.
    pub kind: PageKind,
    /// 1 or 2.
    pub level: u8,
    /// How many pages it holds; `null` when timing does not show it.
    pub entries: Option<Entries>,
    /// Associativity; `null` when timing does not show it.
    pub ways: Option<Ways>,
    /// How a page finds its set; `null` when timing does not show it or there is one set only.
    pub index: Option<Index>,
    /// Added time of a miss that hits the next level (or is walked with near page-table entries), in ns.
    pub miss_ns: Option<Estimate>,
    /// The same in core cycles.
    pub miss_cycles: Option<Estimate>,
    /// Why something is `null`, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_told: Option<String>,
}

/// How many entries the measurement allows: one number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "RawEntries")]
#[schemars(with = "RawEntries")]
pub struct Entries {
    /// The smallest number that explains what was measured.
    pub low: u32,
    /// The largest number that does.
    pub high: u32,
}

/// A number of entries as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entries")]
struct RawEntries {
    /// The number; `null` where only a range is known.
    value: Option<u32>,
    /// The smallest number that explains what was measured.
    low: u32,
    /// The largest number that does.
    high: u32,
}

impl From<Entries> for RawEntries {
    fn from(entries: Entries) -> Self {
        let Entries { low, high } = entries;
        let value = entries.value();
        Self { value, low, high }
    }
}

impl Entries {
    /// One number.
    pub fn exactly(number: u32) -> Self {
        Self {
            low: number,
            high: number,
        }
    }

    /// The number, where just one explains what was measured: a range has none.
    pub fn value(self) -> Option<u32> {
        self.is_exact().then_some(self.low)
    }

    /// Is there just one number that explains what was measured?
    pub fn is_exact(self) -> bool {
        self.low == self.high
    }
}

impl fmt::Display for Entries {
    /// `72`, or `68-73`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(value) => f.pad(&value.to_string()),
            None => f.pad(&format!("{}-{}", self.low, self.high)),
        }
    }
}

/// Associativity: a number of ways, or `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ways {
    /// Any page anywhere.
    Full,
    /// So many places for each page.
    #[serde(untagged)]
    Count(u32),
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(ways) => f.pad(&format!("{ways}-way")),
            Self::Full => f.pad("full"),
        }
    }
}

/// What a first access to a page costs when no TLB holds it, above a first-level hit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Walk {
    /// Page kind.
    pub kind: PageKind,
    /// Pages touched in turn.
    pub pages: u64,
    /// Bytes of last-level page-table entries that these pages bring into the caches, counted in whole lines.
    pub entry_bytes: Bytes,
    /// Added core cycles: the median of visits with its 95 % CI.
    pub cycles: Estimate,
    /// Added time in ns.
    pub ns: Estimate,
    /// Did every visit go on until its laps no longer became cheaper? If not, the figure is an upper bound.
    pub converged: bool,
}

/// Do two page kinds compete for the entries of a level?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// The two kinds.
    pub kinds: [PageKind; 2],
    /// TLB level.
    pub level: u8,
    /// `true` shared, `false` separate, `null` unknown.
    pub shared: Option<bool>,
    /// What was seen.
    pub evidence: String,
}

/// How the probed pages were laid out in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Page kind.
    pub kind: PageKind,
    /// Aliased or private.
    pub layout: MemoryLayout,
    /// What the self-test saw, and what proves the kind.
    pub evidence: String,
}

/// What lies behind the probed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryLayout {
    /// All pages are one physical page: the data is always in the first-level cache.
    Aliased,
    /// As `aliased` for the second level; pages of their own for the first, because this CPU's way prediction makes aliases
    /// more expensive by a constant.
    AliasedAboveFirst,
    /// Every page has memory of its own, lines spread over the cache's sets.
    Private,
}

/// What another source says about a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// Who says it: `cpuid 0x80000005`, `cpu table: epyc-9654`.
    pub source: String,
    /// Page kind.
    pub kind: PageKind,
    /// 1 or 2.
    pub level: u8,
    /// Entries.
    pub entries: u32,
    /// Associativity.
    pub ways: Option<Ways>,
}

/// One point of a curve of cost against pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Page kind.
    pub kind: PageKind,
    /// Pages from one to the next; 0 where they were drawn at random.
    pub stride: u64,
    /// Pages that they were drawn from at random, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_from: Option<u64>,
    /// Neighbouring pages visited at each stride.
    pub block: u64,
    /// Pages visited in turn.
    pub pages: u64,
    /// Core cycles per access.
    pub cycles: Estimate,
}

impl Known {
    /// Is it about that level?
    pub fn is_of(&self, kind: PageKind, level: u8) -> bool {
        (self.kind, self.level) == (kind, level)
    }
}

impl Level {
    /// `base pages, level 2`.
    pub fn place(&self) -> String {
        format!("{} pages, level {}", self.kind, self.level)
    }
}

impl Tlb {
    /// The level of a kind.
    pub fn level(&self, kind: PageKind, level: u8) -> Option<&Level> {
        self.levels
            .iter()
            .find(|found| found.kind == kind && found.level == level)
    }

    /// Takes levels for no more than lower bounds where others say that they hold more, or where no TLB is built with what
    /// timing shows.
    pub fn widen(&mut self) {
        for level in &mut self.levels {
            level.widen(&self.known);
        }
    }

    /// The warning about levels that timing alone shows as one number. Contention that holds a whole part of all ways from the first pass
    /// to the last leaves a smaller TLB that could have been built: only another source could show that.
    pub fn unconfirmed(&self) -> Option<Warning> {
        let alone = |level: &&Level| {
            let exact = level.entries.is_some_and(Entries::is_exact);
            exact && !self.known.iter().any(|known| known.is_of(level.kind, level.level))
        };
        let levels: Vec<String> = self.levels.iter().filter(alone).map(Level::place).collect();
        (!levels.is_empty()).then(|| {
            Warning::new(
                "tlb-unconfirmed",
                format!(
                    "neither CPUID nor the CPU table says what {} hold{}: by timing alone, contention that held a third or a quarter \
                     of all ways from the first pass to the last cannot be told from a smaller TLB",
                    levels.join(" and "),
                    if levels.len() == 1 { "s" } else { "" }
                ),
            )
        })
    }

    /// Where the measurement and what others say are at odds, one warning each.
    pub fn disagreements(&self) -> Vec<Warning> {
        self.known.iter().filter_map(|known| self.disagreement(known)).collect()
    }

    fn disagreement(&self, known: &Known) -> Option<Warning> {
        let level = self.level(known.kind, known.level)?;
        let entries = level.entries?;
        let entries_differ = known.entries < entries.low || known.entries > entries.high;
        let ways_differ = matches!((known.ways, level.ways), (Some(said), Some(seen)) if said != seen);
        if !entries_differ && !ways_differ {
            return None;
        }
        let ways = |ways: Option<Ways>| ways.map_or(String::new(), |ways| format!(" {ways}"));
        Some(Warning::new(
            "tlb-disagreement",
            format!(
                "{}: timing shows {entries}{}, {} says {}{}; timing is what programs feel",
                level.place(),
                ways(level.ways),
                known.source,
                known.entries,
                ways(known.ways),
            ),
        ))
    }
}

#[cfg(test)]
mod tests;
