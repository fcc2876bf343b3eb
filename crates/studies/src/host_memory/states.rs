//! States of free memory: below which edges a host breaks huge pages, balloons, swaps and blocks.

use model::{Bytes, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PAGE;
use crate::size::esx::min_free;

names! {
    /// Whose edges.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum States, "a set of states" {
        /// ESX Server in 2002: soft, hard and low below 4, 2 and 1 % of memory, high again above 6 %.
        #[serde(rename = "esx-2002")]
        Esx2002 = "esx-2002",
        /// ESX 4: shares of minFree, which is 6 % of memory.
        #[serde(rename = "esx-4")]
        Esx4 = "esx-4",
        /// ESX 5: the same shares of the sliding minFree.
        #[serde(rename = "esx-5")]
        Esx5 = "esx-5",
        /// ESXi 6 and later: huge pages are broken below 400 % of the sliding minFree, and shared at once below 100 %.
        #[serde(rename = "esx-6")]
        Esx6 = "esx-6",
        /// Linux: reclaim begins below the low watermark of the zone, and ends above the high one.
        #[serde(rename = "linux")]
        Linux = "linux",
    }
}

names! {
    /// How short memory is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Level {
        /// Enough is free.
        High = "high",
        /// Huge pages are broken when the next scan for equal pages meets them (ESXi 6: below 400 %).
        Break = "break",
        /// Huge pages are broken and shared at once (ESXi 6: clear).
        Clear = "clear",
        /// Memory is taken by ballooning.
        Soft = "soft",
        /// Memory is taken by compressing and swapping.
        Hard = "hard",
        /// The same, and no new memory is given out.
        Low = "low",
    }
}

/// A level, and between which edges it stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The level.
    pub level: Level,
    /// It begins when less than this is free, in pages of 4 KiB.
    pub below: u64,
    /// It ends when at least this is free, in pages of 4 KiB.
    pub until: u64,
}

impl States {
    /// The bytes that edges are shares of: minFree, all memory (2002), or the minimal watermark of Linux.
    pub fn unit(self, memory: Bytes) -> f64 {
        match self {
            Self::Esx2002 => memory.0 as f64,
            Self::Esx4 => 0.06 * memory.0 as f64,
            Self::Esx5 | Self::Esx6 => min_free(memory),
            Self::Linux => min_free_kbytes(memory) as f64 * 1024.0,
        }
    }

    /// Its levels from the least short one on. A level ends at the edge above its own, so that states do not flutter (Waldspurger 2002).
    pub fn edges(self, memory: Bytes) -> Vec<Edge> {
        let unit = self.unit(memory);
        let of = |level, below: f64, until: f64| Edge {
            level,
            below: (unit * below / PAGE as f64) as u64,
            until: (unit * until / PAGE as f64) as u64,
        };
        let reclaim = [
            of(Level::Soft, 0.64, 1.0),
            of(Level::Hard, 0.32, 0.64),
            of(Level::Low, 0.16, 0.32),
        ];
        match self {
            Self::Esx2002 => vec![
                of(Level::Soft, 0.04, 0.06),
                of(Level::Hard, 0.02, 0.04),
                of(Level::Low, 0.01, 0.02),
            ],
            Self::Esx4 | Self::Esx5 => reclaim.to_vec(),
            Self::Esx6 => [of(Level::Break, 4.0, 4.0), of(Level::Clear, 1.0, 4.0)]
                .into_iter()
                .chain(reclaim)
                .collect(),
            Self::Linux => {
                let gap = (unit / 4.0).max(memory.0 as f64 / 1000.0) / unit;
                vec![
                    of(Level::Hard, 1.0 + gap, 1.0 + 2.0 * gap),
                    of(Level::Low, 1.0, 1.0 + gap),
                ]
            }
        }
    }
}

/// The kernel's vm.min_free_kbytes for so much memory: the root of 16 times the KiB, within 128 KiB and 256 MiB (mm/page_alloc.c).
fn min_free_kbytes(memory: Bytes) -> u64 {
    (memory.0 / 1024 * 16).isqrt().clamp(128, 262_144)
}

/// The level that free memory is at, after the level before.
pub(super) fn next(edges: &[Edge], before: Level, free: u64) -> Level {
    let mut level = edges
        .iter()
        .rev()
        .find(|edge| free < edge.below)
        .map_or(Level::High, |edge| edge.level);
    // A level that has begun goes on until its own end.
    for edge in edges {
        if edge.level <= before && edge.level > level && free < edge.until {
            level = edge.level;
        }
    }
    level
}

#[cfg(test)]
mod tests {
    use super::{Level, States, min_free_kbytes, next};
    use model::Bytes;

    #[test]
    fn edges_are_the_published_shares() {
        let memory = Bytes::mib(130_607);
        let mib = |pages: u64| pages as f64 / 256.0;
        let edges = States::Esx6.edges(memory);
        let below: Vec<(Level, f64)> = edges.iter().map(|edge| (edge.level, mib(edge.below))).collect();
        for ((level, found), (wanted, share)) in below.into_iter().zip([
            (Level::Break, 4.0),
            (Level::Clear, 1.0),
            (Level::Soft, 0.64),
            (Level::Hard, 0.32),
            (Level::Low, 0.16),
        ]) {
            assert_eq!(level, wanted);
            assert!((found - 1920.47 * share).abs() < 0.05, "{level:?}: {found}");
        }
        let old = States::Esx2002.edges(Bytes::gib(100));
        assert_eq!(
            old.iter()
                .map(|edge| mib(edge.below).round() as u64)
                .collect::<Vec<_>>(),
            [4096, 2048, 1024]
        );
        assert_eq!(min_free_kbytes(Bytes::gib(64)), 32_768);
    }

    #[test]
    fn a_level_ends_at_the_edge_above_its_own() {
        let edges = States::Esx5.edges(Bytes::gib(100));
        let share = |part: f64| (part * States::Esx5.unit(Bytes::gib(100)) / 4096.0) as u64;
        assert_eq!(next(&edges, Level::High, share(0.8)), Level::High);
        assert_eq!(next(&edges, Level::High, share(0.6)), Level::Soft);
        assert_eq!(next(&edges, Level::Soft, share(0.8)), Level::Soft);
        assert_eq!(next(&edges, Level::Soft, share(1.1)), Level::High);
        assert_eq!(next(&edges, Level::Soft, share(0.3)), Level::Hard);
        assert_eq!(next(&edges, Level::Hard, share(0.5)), Level::Hard);
        assert_eq!(next(&edges, Level::Hard, share(0.7)), Level::Soft);
        assert_eq!(next(&edges, Level::High, 0), Level::Low);
    }
}
