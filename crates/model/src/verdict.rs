//! The verdict of a checkup: what huge pages save, which kind to choose, and what limits their use now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::headline::{Percent, Shows};
use crate::process::Unseen;
use crate::{Bytes, PageKind, Reading};

/// The verdict of a checkup, for scripts and for readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What huge pages save.
    pub saving: Saving,
    /// Which page kind to choose.
    pub choice: Choice,
    /// What the host makes of this machine's huge pages, if it backs them with smaller ones.
    #[serde(default)]
    pub host: Option<HostPages>,
    /// How many times the least cache lines of the host's page table scattered base pages fill (see `host_lines` of the headline). Present only
    /// where that is part of a saving: in a virtual machine whose host is not known to have larger pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scattered: Option<f64>,
    /// Free memory in blocks below 2 MiB before the measurement, or why it could not be read. Present only where base pages come from it and lie
    /// scattered, or may do so without root being there to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_blocks: Option<Reading<Bytes>>,
    /// The programs with most memory on huge pages now, the largest first; `null` if processes were left out.
    #[serde(default)]
    pub users: Option<Vec<User>>,
    /// What limits the use of huge pages now.
    pub limits: Limits,
    /// The next commands for this machine, the most useful first.
    #[serde(default)]
    pub next: Vec<Next>,
    /// The same for readers: one entry for `saving` and `choice`, one for `users`, one for `limits`.
    pub sentences: Vec<String>,
}

/// Smaller pages of a host behind the huge pages of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPages {
    /// Their size.
    pub bytes: Bytes,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
}

/// A program that uses huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its process with most memory on huge pages.
    pub pid: u32,
    /// Memory of that process on huge pages.
    pub bytes: Bytes,
}

/// A command to type next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Next {
    /// The command; words in capitals are to be replaced.
    pub command: String,
    /// Why.
    pub why: WhyNext,
}

/// Why a command is next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WhyNext {
    /// There are errors or warnings.
    Findings {
        /// How many.
        count: usize,
        /// What the first of them costs.
        first: String,
    },
    /// A program runs here that has huge page settings of its own.
    Server {
        /// Its name.
        name: String,
        /// Its process.
        pid: u32,
    },
    /// Virtual machines run here.
    Machines,
    /// Does a program gain from huge pages?
    Try,
    /// What would change if every program got them.
    Enable,
    /// A longer measurement would show it.
    Longer,
    /// Nothing was measured on a captured machine.
    OnTheMachine,
    /// Which page kinds back which process.
    Look,
}

/// What huge pages save in time per access, compared with base pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Saving {
    /// They save time at one working set at least.
    Saves {
        /// One page kind at each working set, smallest first.
        at: Vec<Saved>,
    },
    /// At every working set the interval lies within 3 points of no saving.
    NoDifference {
        /// The same.
        at: Vec<Saved>,
    },
    /// They cost time at one working set at least, and save none at any.
    Costs {
        /// The same.
        at: Vec<Saved>,
    },
    /// At one working set at least the interval leaves open whether they save time, and none shows that they do.
    CannotTell {
        /// The same.
        at: Vec<Saved>,
        /// Why the intervals are as wide as they are.
        why: Doubt,
        /// Seconds that such a checkup would take until the widest interval is 2 points wide to each side; `null` if unknown.
        seconds: Option<f64>,
    },
    /// Base pages and a larger kind were not both measured at one working set.
    NothingToCompare {
        /// Why the first missing kind was not measured, if one was asked for.
        why: Option<String>,
    },
    /// Latency was not measured.
    NotMeasured {
        /// Why.
        why: String,
    },
}

/// What one page kind saves at one working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    /// Page kind.
    pub kind: PageKind,
    /// Working set.
    pub bytes: Bytes,
    /// What the interval shows.
    pub shows: Shows,
    /// Time saved, in percent of the time on base pages; negative if this kind is slower.
    #[serde(flatten)]
    pub saved: Percent,
    /// Median ns per access on base pages.
    pub base_ns: f64,
    /// Median ns per access on this kind.
    pub ns: f64,
}

/// Why an interval is wide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Doubt {
    /// There was time for few draws of memory.
    FewDraws {
        /// How many.
        draws: u32,
    },
    /// Draws of memory differ.
    DrawsDiffer {
        /// The least that was saved in a draw, in percent.
        least: f64,
        /// The most.
        most: f64,
    },
}

/// The two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Which page kind to choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Choice {
    /// The best kind, and no kind that is easier to set up comes close.
    Best {
        /// The kind to choose.
        kind: PageKind,
    },
    /// A kind that is easier to set up than the best and takes hardly more time.
    Enough {
        /// The kind to choose.
        kind: PageKind,
        /// The kind that saves most.
        best: PageKind,
        /// How much more time `kind` takes than `best` at most, in percent (upper end of the 95 % CI).
        at_most_percent: f64,
    },
    /// The interval leaves open whether a kind that is easier to set up is as good as the best.
    Open {
        /// The kind that saves most.
        best: PageKind,
        /// The kind that may be as good.
        rival: PageKind,
        /// How much more time `rival` takes than `best`, in percent: 95 % CI.
        more_percent: Interval,
    },
    /// Only one kind larger than base pages was measured.
    Only {
        /// That kind.
        kind: PageKind,
    },
    /// Huge pages save nothing, so no kind is better than another.
    NoDifference,
    /// Nothing was measured that could decide it.
    Unknown,
}

/// What limits the use of huge pages now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The THP policy in effect: `always`, `madvise` or `never`.
    pub thp: Reading<String>,
    /// Pages in every hugetlb pool.
    pub pools: Reading<Vec<PoolPages>>,
    /// The share of resident memory that huge pages back; `null` if processes were left out or nothing is known of them.
    pub coverage: Option<Coverage>,
}

/// Pages in one hugetlb pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPages {
    /// Size of one page.
    pub size: Bytes,
    /// Pages in the pool.
    pub pages: Reading<u64>,
    /// Free pages in the pool.
    pub free: Reading<u64>,
}

/// How much resident memory is backed by huge pages, as far as it could be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Share in percent.
    pub percent: f64,
    /// Resident memory whose backing is known.
    pub resident_bytes: Bytes,
    /// Processes it belongs to.
    pub processes: u64,
    /// Processes that it leaves out, because they could not be read.
    #[serde(default)]
    pub unseen: Unseen,
}
