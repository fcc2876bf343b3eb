//! What huge pages save at a few working sets, measured in rounds: the measurement behind the first sentence of a checkup.

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
