//! What huge pages save at a few working sets, measured in rounds: the measurement behind the first sentence of a checkup.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Backed;
use crate::{Bytes, PageKind};

/// Page kinds against each other at working sets that were fixed beforehand, visited by turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// One entry for each pair of kinds at each working set.
    pub gains: Vec<PairedGain>,
    /// Times that memory was taken anew.
    pub draws: u32,
    /// Rounds of visits in each.
    pub rounds: u32,
    /// Cache lines that the entries of base pages fill in a host's page table, as a multiple of the least: 1 of frames in order, 8 where each
    /// page has a line of its own. At the largest working set, the median over draws; absent where frame numbers are hidden (without root).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_lines: Option<f64>,
    /// Is every interval as narrow as was aimed at?
    pub settled: bool,
    /// The CPU of the timed thread.
    pub cpu: u32,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// What one page kind saves against another at one working set: random reads, one cache line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedGain {
    /// Working set.
    pub bytes: Bytes,
    /// The kind.
    pub kind: PageKind,
    /// The kind that it is compared with.
    pub against: PageKind,
    /// Time saved, in percent of the time on `against`: the median over all rounds, with its 95 % CI; negative if `kind` is slower.
    /// `null` of too few draws for an interval.
    pub saved: Option<Percent>,
    /// Time saved in percent, by draw in order of time: the median of its rounds.
    pub draws: Vec<f64>,
    /// Median ns of a read on `kind`.
    pub ns: Option<f64>,
    /// Median ns of a read on `against`.
    pub against_ns: Option<f64>,
    /// What backed `kind`, as proved in the last draw.
    pub backing: Backed,
    /// Why there is no number, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

/// A percentage with its 95 % CI.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percent {
    /// The middle.
    pub percent: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the interval of a saving shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// It lies above none, and reaches beyond 3 points.
    Saves,
    /// It lies within 3 points of none.
    NoDifference,
    /// It lies below none, and reaches beyond 3 points.
    Costs,
    /// It holds none, and reaches beyond 3 points.
    CannotTell,
}

/// Base pages are scattered from so many times the least lines on: then half of them or more are there because of where the pages lie.
pub const SCATTERED: f64 = 2.0;
/// Entries of a page table in a cache line.
pub const ENTRIES: usize = 8;

/// Lines of a table with an entry for each frame that these frames fill, as a multiple of the least; none of no frame. Frames in descending
/// order, as the kernel hands out pages that were freed last, share lines like frames in ascending order.
pub fn host_lines(frames: &[u64]) -> Option<f64> {
    let lines: BTreeSet<u64> = frames.iter().map(|frame| frame / ENTRIES as u64).collect();
    let least = frames.len().div_ceil(ENTRIES);
    (least > 0).then(|| lines.len() as f64 / least as f64)
}

/// A saving of so many points and less makes no difference.
pub const WORTH: f64 = 3.0;

impl Percent {
    /// What the interval shows.
    pub fn shows(&self) -> Shows {
        if self.low >= -WORTH && self.high <= WORTH {
            Shows::NoDifference
        } else if self.low > 0.0 {
            Shows::Saves
        } else if self.high < 0.0 {
            Shows::Costs
        } else {
            Shows::CannotTell
        }
    }

    /// Half of the interval's width, in points.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::host_lines;

    #[test]
    fn frames_share_lines_in_whichever_order_they_were_handed_out() {
        assert_eq!(host_lines(&[]), None);
        let order: Vec<u64> = (4096..8192).collect();
        let descending: Vec<u64> = order.iter().rev().copied().collect();
        let pairs: Vec<u64> = order.iter().map(|frame| frame / 2 * 8 + frame % 2).collect();
        let apart: Vec<u64> = order.iter().map(|frame| frame * 9).collect();
        let lines = [order, descending, pairs, apart].map(|frames| host_lines(&frames));
        assert_eq!(lines, [1.0, 1.0, 4.0, 8.0].map(Some));
    }
}
