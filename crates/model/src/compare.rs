//! What a comparison of one program under several page policies found: runs, what backed them, and verdicts.

mod design;
mod method;
mod metric;
mod parts;
mod why;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::design::{Design, Ended, InPlace, Loads, Order, Spent};
pub use self::method::Method;
pub use self::metric::Metric;
pub use self::parts::{Difference, Even, Parts};
pub use self::why::{Because, Why};
use crate::collapse::Refused;
use crate::placement::Migrations;
use crate::{Backing, Bytes, Estimate, PageKind, Reading, Unread};

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compare {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How the runs were arranged.
    pub design: Design,
    /// The arms, the reference first.
    pub arms: Vec<Arm>,
    /// Each metric of each arm against the reference.
    pub verdicts: Vec<Judged>,
    /// The reference against itself, for each metric: the noise of this very comparison.
    pub controls: Vec<Control>,
    /// Where wall, user and system time disagree: what an arm gained, what it cost, and from which run length on it pays; empty
    /// where they agree, or differ by chance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Parts>,
    /// Why hardware counters are missing, or what they leave out; absent when there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu_note: Option<String>,
    /// What comparisons of this program can show on this machine (`--what-can-be-seen`); absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// How each arm was started: what it takes to start it so without a comparison; empty in place, and of older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Start>,
    /// How a process was left whose pages changed in place; absent in other designs, and if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
}

/// What comparisons can show, by the noise of a program compared with itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// The metric.
    pub metric: String,
    /// Seconds of a block of runs.
    pub block_seconds: f64,
    /// The most blocks where no number of runs is asked for; absent in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// What can be seen in which time, of comparisons of no more blocks.
    pub visible: Vec<Visible>,
    /// The time that the smallest effect asked for takes.
    pub smallest: Visible,
}

/// A difference that four of five comparisons find.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Visible {
    /// Seconds of the comparison.
    pub seconds: f64,
    /// Blocks in that time.
    pub blocks: u32,
    /// The smallest such difference: 0.01 is 1 %.
    pub effect: f64,
}

/// How an arm was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// The arm.
    pub arm: String,
    /// Variables that were set for it.
    pub env: BTreeMap<String, String>,
    /// How it got its pages, as `--technique` names it; `null` of an arm with one way only.
    pub technique: Option<String>,
}

/// One variant of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// Its name, such as `hugetlb-2M` or `thp@pack`.
    pub name: String,
    /// How it is brought about, in words.
    pub technique: String,
    /// The page kind that it is about; `null` where it is not about one.
    pub kind: Option<PageKind>,
    /// Where it had to run (`--place`); absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Did it take effect?
    pub took_effect: Reading<bool>,
    /// The share of the program's memory on pages of its kind (of any large kind, for an arm without one), over the runs that
    /// count; over all that could be read where it did not take effect.
    pub coverage: Reading<Estimate>,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

/// One run of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its block, from 0.
    pub block: u32,
    /// The second run of the reference in its block?
    pub again: bool,
    /// Its place in time among all runs that count, from 0.
    #[serde(default)]
    pub turn: u32,
    /// Metrics by name: the built-in ones in [`Metric`], and those that were asked for.
    pub metrics: BTreeMap<String, f64>,
    /// Why it does not count; absent of a run that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// What backed the program's own memory when it was largest; files it mapped are left out.
    pub backing: Reading<Backing>,
    /// What backed the code that it mapped from files, where the arm is about code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Backing>,
    /// Looks at the page kinds, and the seconds that they took.
    pub looks: Looks,
    /// Regions that the preload served and did not, huge pages collapsed from outside, or why pages could not be flipped,
    /// in words; empty without such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The flip in front of it, where pages change in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Slice>,
    /// Metrics of each load on a server between its start and its end, in order; `metrics` has their medians.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<BTreeMap<String, f64>>,
    /// Where it ran; absent where that was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Ran>,
}

/// Why a run does not count: it is not proved that it had the pages of its arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// A smaller share of its memory was backed by the arm's page kind than an arm in effect has.
    WrongPages,
    /// Its backing could not be read, and its page faults differ from those of runs whose backing is proved.
    OtherFaults,
    /// Its backing could not be read, and page faults do not show it.
    Unproved,
}

/// Where a run's threads ran, and what came of that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// CPU seconds on each CPU; those without time are left out.
    pub cpu_s: BTreeMap<u32, f64>,
    /// Moves from one CPU to another by kind; `null` where the kernel does not let them be recorded.
    pub migrations: Option<Migrations>,
    /// Seconds that threads waited on run queues, as last read: those of short threads are missing. `null` if never read.
    pub queued_s: Option<f64>,
}

/// The flip before a slice, and the pages at its two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// What was done before it, and is not part of it.
    pub flip: Flip,
    /// Memory backed by huge pages at its beginning; `null` if that could not be read.
    pub large_before: Option<Bytes>,
    /// Memory backed by huge pages at its end; `null` if that could not be read.
    pub large_after: Option<Bytes>,
}

/// Memory of a living process turned to one page kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// Seconds that it took.
    pub seconds: f64,
    /// PMD ranges that it changed.
    pub turned: u64,
    /// Pieces that were so already.
    pub already: u64,
    /// Pieces left alone on base pages: too little of them is in use.
    pub sparse: u64,
    /// Pieces that could not be turned, one entry for each reason.
    pub refused: Vec<Refused>,
    /// Increase of the machine's `thp_split_page` during the flip.
    pub splits: Option<u64>,
    /// Increase of the machine's `thp_collapse_alloc` during the flip.
    pub collapses: Option<u64>,
}

/// How a process was left that was flipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// What backed its memory at first.
    pub before: Backing,
    /// What backs it now.
    pub after: Reading<Backing>,
    /// PMD ranges that are not backed as before.
    pub wrong: u64,
    /// Seconds that it took to give the pages back.
    pub seconds: f64,
}

/// What looking at a run's page kinds cost, all of it outside of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Looks {
    /// How often page tables were walked.
    pub count: u32,
    /// Seconds spent in that.
    pub seconds: f64,
}

/// One metric of one arm against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The arm.
    pub arm: String,
    /// The reference.
    pub against: String,
    /// The metric's name.
    pub metric: String,
    /// How many times better than the reference, whichever direction is better for this metric: 1.2 is 20 % more done in
    /// the same time. `null` if there is no pair of runs.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval: of all ratios that the test behind `p` does not reject at what the last look might
    /// spend, so that it holds at 95 % wherever the runs ended, and 1 is outside wherever there is a verdict. `null` with fewer
    /// pairs than that takes.
    pub low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    pub high: Option<f64>,
    /// The probability of a difference so clear if there is none, corrected for the number of arms and metrics.
    pub p: Option<f64>,
    /// Pairs of runs behind it.
    pub pairs: u32,
    /// What that comes to.
    pub verdict: Verdict,
    /// Why.
    pub why: Why,
}

/// The reference against itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The metric's name.
    pub metric: String,
    /// Its second run in a block as a ratio to its first in a random order; 1 but for noise. `null` without pairs.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval, by itself: no run ends for it. `null` with few pairs.
    pub low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    pub high: Option<f64>,
    /// The probability of a difference so clear if there is none.
    pub p: Option<f64>,
}

crate::names! {
    /// What a comparison comes to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// The difference is likely, large enough and above the noise of the comparison itself.
        Better = "better",
        /// Likewise, the other way.
        Worse = "worse",
        /// The whole interval lies within the smallest effect: a difference that counts is ruled out.
        NoDifference = "no difference",
        /// No difference was shown, and the interval does not rule one out.
        Inconclusive = "inconclusive",
        /// The arm did not get its pages, so that nothing was compared.
        NotInEffect = "not in effect",
        /// It could not be judged: too few pairs of runs, or backing that could not be read.
        Unknown = "unknown",
    }
}

impl Compare {
    /// All runs of all arms in order of time, each with the index of its arm.
    pub fn in_time(&self) -> Vec<(usize, &Run)> {
        let mut all: Vec<(usize, &Run)> = Vec::new();
        for (index, arm) in self.arms.iter().enumerate() {
            all.extend(arm.runs.iter().map(|run| (index, run)));
        }
        // Results that are older than turns have blocks at least.
        all.sort_by_key(|(_, run)| (run.turn, run.block));
        all
    }
}

impl Arm {
    /// The runs that count, in their order.
    pub fn counted(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.left_out.is_none())
    }

    /// The values of one metric in the runs that count, in their order.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        self.counted()
            .filter_map(|run| run.metrics.get(metric).copied())
            .collect()
    }
}

impl Run {
    /// One of which nothing is known yet but its numbers.
    pub fn bare(metrics: impl IntoIterator<Item = (String, f64)>, backing: Result<Backing, Unread>) -> Self {
        Self {
            block: 0,
            again: false,
            turn: 0,
            left_out: None,
            metrics: metrics.into_iter().collect(),
            backing: Reading::from(backing),
            text: None,
            looks: Looks::default(),
            notes: Vec::new(),
            slice: None,
            loads: Vec::new(),
            ran: None,
        }
    }

    /// The share of its memory (of its mapped code, if the arm is about that) on pages of `kind`, or of any large kind.
    ///
    /// # Errors
    /// If the page kinds could not be read, or nothing was there to look at.
    pub fn coverage(&self, kind: Option<PageKind>) -> Result<f64, Unread> {
        let backing = match &self.text {
            Some(text) => text.clone(),
            None => self.backing.clone().into_result()?,
        };
        let share = kind.map_or_else(|| backing.coverage(), |kind| backing.share(kind));
        share.ok_or_else(|| {
            Unread::new(
                crate::Cause::Absent,
                "page kinds",
                "nothing was backed when it was looked",
            )
        })
    }

    /// The share of its CPU time on each CPU; `None` where that is not known.
    pub fn shares(&self) -> Option<BTreeMap<u32, f64>> {
        let cpu_s = &self.ran.as_ref()?.cpu_s;
        let all: f64 = cpu_s.values().sum();
        (all > 0.0).then(|| cpu_s.iter().map(|(&cpu, seconds)| (cpu, seconds / all)).collect())
    }

    /// The most memory that it had at once.
    pub fn memory(&self) -> Option<Bytes> {
        self.metrics
            .get(Metric::Memory.name())
            .map(|&bytes| Bytes(bytes as u64))
    }
}
