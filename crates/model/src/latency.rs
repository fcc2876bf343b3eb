//! The shape of a latency measurement: patterns, points, and what was really measured.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Backing, Bytes, Estimate, PageKind};

/// In which order a chase visits its working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Every cache line once, in random order: what pointer-rich programs do.
    RandomLine,
    /// One line of every base page, in random order: mostly translation, hardly any cache (TLB-bound).
    LinePerPage,
    /// Pages in sequence, lines inside a page in random order: mostly cache, hardly any translation.
    PageRandom,
    /// Ascending addresses that far apart: what prefetchers like.
    Stride(Bytes),
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RandomLine => f.pad("random-line"),
            Self::LinePerPage => f.pad("line-per-page"),
            Self::PageRandom => f.pad("page-random"),
            Self::Stride(step) => f.pad(&format!("stride-{}", step.exact())),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || {
            format!(
                "`{text}` is not a pattern (write random-line, line-per-page, page-random, or stride-SIZE with a multiple of 64B and its unit, such as stride-256B)"
            )
        };
        match text {
            "random-line" => Ok(Self::RandomLine),
            "line-per-page" => Ok(Self::LinePerPage),
            "page-random" => Ok(Self::PageRandom),
            other => {
                let step = other.strip_prefix("stride-").and_then(|step| step.parse().ok());
                let step = step.filter(|step: &Bytes| step.0 > 0 && step.0.is_multiple_of(64));
                step.map(Self::Stride).ok_or_else(fail)
            }
        }
    }
}

crate::as_text!(Pattern, {"type": "string", "pattern": "^(random-line|line-per-page|page-random|stride-[0-9]+[BKMGT])$"});

crate::names! {
    /// What one step of the chase does to the line it visits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Access, "an access" {
        /// Loads the next pointer.
        #[default]
        Read = "read",
        /// Loads the next pointer and stores to the same line.
        Write = "write",
    }
}

/// The whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// One entry per page kind, size, pattern and access that was asked for, measured or not.
    pub points: Vec<Point>,
    /// Why there are no hardware counters; absent when there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_pmu: Option<String>,
    /// Time stamp counter, in GHz: the clock behind every ns.
    pub tsc_ghz: f64,
    /// Core clock over the run in GHz, from a chain of dependent multiplications; `null` where unknown.
    pub core_ghz: Option<Estimate>,
    /// The CPU the timed thread was pinned to.
    pub cpu: u32,
    /// Rounds through all points.
    pub rounds: u32,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// One working set on one page kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The page kind that was asked for.
    pub kind: PageKind,
    /// Working set.
    pub bytes: Bytes,
    /// Order of visits.
    pub pattern: Pattern,
    /// Loads only, or loads and stores.
    pub access: Access,
    /// Time of one step in its converged state, in ns; `null` when the backing asked for was not obtained, or when the
    /// point did not converge within its budget (then there is a `bound`).
    pub ns: Option<Estimate>,
    /// Median of each visit in ns, in order of time.
    #[serde(default)]
    pub visits: Vec<f64>,
    /// Between which ns the converged time lies, of a point that did not converge within its budget; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What shows that the point has converged, or that it has not; absent when nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
    /// Core cycles of one step; `null` where the core clock is unknown or memory dominates.
    pub cycles: Option<Estimate>,
    /// What a step costs while nothing else uses the core's caches; `null` beyond them, or when nothing was measured.
    #[serde(default)]
    pub quiet: Option<Quiet>,
    /// What was asked for and what smaps or PAGEMAP_SCAN prove.
    pub backing: Backed,
    /// Why there is neither `ns` nor `bound`, in one sentence that says what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    /// Why sampling ended.
    pub stopped: Option<Stopped>,
    /// Samples that were thrown away, by reason.
    pub dropped: Dropped,
    /// Hardware counters over the kept samples; `null` without a PMU.
    pub counters: Option<Counters>,
}

impl Point {
    /// One that nothing was measured of yet.
    pub fn bare(kind: PageKind, bytes: Bytes, pattern: Pattern, access: Access, backing: Backed) -> Self {
        Self {
            kind,
            bytes,
            pattern,
            access,
            ns: None,
            visits: Vec::new(),
            bound: None,
            convergence: None,
            cycles: None,
            quiet: None,
            backing,
            not_measured: None,
            stopped: None,
            dropped: Dropped::default(),
            counters: None,
        }
    }
}

/// A step without disturbance. An SMT sibling (in a VM often another guest's) takes cache lines away in bursts and moves
/// the median; the shortest samples do not feel it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quiet {
    /// Time of one step, in ns: the 0.5 % quantile of the kept samples.
    pub ns: f64,
    /// The same quantile in core cycles.
    pub cycles: f64,
    /// Share of the kept samples that were within 3 % of these cycles: how much of the time it was quiet.
    pub share: f64,
}

/// Limits of a time that did not converge. They are no 95 % interval: the time may be anywhere between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// No less than this many ns; `null` where no visit shows it.
    pub low: Option<f64>,
    /// No more than this many ns; `null` where no visit shows it.
    pub high: Option<f64>,
}

/// Two approaches to the state that a long walk is in: after a parallel warm-up, which leaves more in the caches than the
/// walk itself does, and from cold caches. The converged time lies between where they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Convergence {
    /// Do both arrive at the same time, within 5 % or what visits differ by chance?
    pub converged: bool,
    /// ns of a step at the end of visits that begin with a warm-up, their median.
    pub warm_ns: f64,
    /// ns of a step at the end of visits that begin cold, their median.
    pub cold_ns: f64,
    /// Visits that begin with a warm-up.
    pub warm_visits: u64,
    /// Visits that begin cold, the longest ones.
    pub cold_visits: u64,
    /// Time walked in a visit that begins with a warm-up, in ms; the last half of it is reported.
    pub warm_ms: f64,
    /// The longest time walked in a visit that begins cold, in ms.
    pub cold_ms: f64,
}

/// Asked and got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backed {
    /// The page kind that was asked for.
    pub asked: PageKind,
    /// Bytes by page kind, over the working set's memory.
    pub got: Backing,
    /// Which account of the kernel proves it.
    pub proof: String,
}

/// Where the frames of base pages lie in memory. In a guest, the entries of the host's page table for eight frames in an aligned group share a cache line, whatever the
/// order of the pages on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frames {
    /// Pages by how many lie together with them: 1, 2 to 3, 4 to 7 and so on; the last number is of 512. Up to eight are those in the same aligned
    /// group of eight frames, more fill more than half of an aligned group of 16 to 512.
    pub pages_by_run: [u64; RUN_LENGTHS],
    /// The size of all 2 MiB ranges of memory that hold any of the frames.
    pub spread: Bytes,
}

/// Lengths of runs that are distinguished.
pub const RUN_LENGTHS: usize = 10;

impl Frames {
    /// Of frame numbers in any order; none of no page.
    pub fn of(frames: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut frames: Vec<u64> = frames.into_iter().collect();
        frames.sort_unstable();
        frames.dedup();
        let mut pages_by_run = [0; RUN_LENGTHS];
        let mut ranges = 0;
        for range in frames.chunk_by(|one, next| one >> RANGE == next >> RANGE) {
            ranges += 1;
            together(range, RANGE, &mut pages_by_run);
        }
        let spread = Bytes::mib(2 * ranges);
        (ranges > 0).then_some(Self { pages_by_run, spread })
    }

    /// How many pages lie together, on average.
    pub fn mean_run(&self) -> f64 {
        let runs = |(power, &pages): (usize, &u64)| pages as f64 / f64::from(1_u32 << power);
        let runs: f64 = self.pages_by_run.iter().enumerate().map(runs).sum();
        let pages: f64 = self.pages_by_run.iter().map(|&pages| pages as f64).sum();
        pages / runs.max(f64::MIN_POSITIVE)
    }
}

/// Bits of a frame number within a 2 MiB range, and within those whose entries share a cache line.
const RANGE: u32 = 9;
const LINE: u32 = 3;

/// Counts the frames of an aligned group of so many bits: together, if they fill more than half of it or are in one line, else each half by itself.
fn together(frames: &[u64], bits: u32, pages_by_run: &mut [u64; RUN_LENGTHS]) {
    let pages = frames.len() as u64;
    if bits == LINE || pages > 1 << (bits - 1) {
        if let Some(power) = pages.checked_ilog2() {
            pages_by_run[power as usize] += pages;
        }
        return;
    }
    let bits = bits - 1;
    let (low, high) = frames.split_at(frames.partition_point(|frame| frame >> bits & 1 == 0));
    [low, high]
        .into_iter()
        .for_each(|half| together(half, bits, pages_by_run));
}

/// Why a point stopped sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The 95 % interval of its median is within 1 %.
    Interval,
    /// Its time budget was spent first.
    Budget,
}

crate::shown_by_name!(Stopped);

/// Samples thrown away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// The thread was switched out involuntarily.
    pub switches: u64,
    /// The thread changed its CPU.
    pub migrations: u64,
    /// The core clock changed between the start and the end of the block.
    pub clock: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.switches + self.migrations + self.clock
    }
}

/// Hardware counters per step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Retired instructions per step.
    pub instructions: f64,
    /// Data TLB misses that walked the page tables, per step.
    pub dtlb_misses: f64,
    /// Cycles with a page walk in flight, per step; `null` where the CPU has no such event.
    pub walk_cycles: Option<f64>,
    /// TLB miss rate as the VCF/Samsung study defines it: data TLB misses / retired instructions.
    pub miss_rate: f64,
}

#[cfg(test)]
mod tests {
    use super::{Access, Backed, Frames, Pattern, Point};
    use crate::{Backing, Bytes, PageKind};

    #[test]
    fn a_point_saved_before_there_were_visits_still_reads() {
        let backing = Backed {
            asked: PageKind::Base,
            got: Backing::new(),
            proof: "smaps".to_owned(),
        };
        let point = Point {
            visits: vec![1.5, 2.5],
            ..Point::bare(
                PageKind::Base,
                Bytes::mib(1),
                Pattern::RandomLine,
                Access::Read,
                backing,
            )
        };
        let mut json = serde_json::to_value(&point).expect("json");
        assert_eq!(serde_json::from_value::<Point>(json.clone()).expect("shape"), point);
        let visits = json.as_object_mut().and_then(|fields| fields.remove("visits"));
        assert_eq!(visits, Some(serde_json::json!([1.5, 2.5])));
        assert!(serde_json::from_value::<Point>(json).expect("shape").visits.is_empty());
    }

    #[test]
    fn frames_are_counted_by_how_many_lie_together_in_any_order() {
        let frames = [7, 102, 101, 100, 4096, 4097, 3].into_iter().chain((8192..9192).rev());
        let frames = Frames::of(frames).expect("pages");
        // 3 and 7, 100 to 102, and 4096 and 4097 have a line each; 8192 to 8703 are a whole range, and 488 most of another.
        assert_eq!(frames.pages_by_run, [0, 7, 0, 0, 0, 0, 0, 0, 488, 512]);
        assert_eq!(frames.spread, Bytes::mib(8), "0 to 511, 4096 to 4607, 8192 to 9215");
        assert!((frames.mean_run() - 1007.0 / (3.5 + 488.0 / 256.0 + 1.0)).abs() < 1e-9);
        let apart = Frames::of((0..100).map(|page| page * 8)).expect("pages");
        assert!((apart.mean_run() - 1.0).abs() < 1e-9, "{apart:?}");
        assert_eq!(Frames::of([]), None);
    }

    #[test]
    fn patterns_read_what_they_print() {
        for pattern in [
            Pattern::RandomLine,
            Pattern::LinePerPage,
            Pattern::PageRandom,
            Pattern::Stride(Bytes(256)),
        ] {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
        for text in ["", "random", "stride-", "stride-0B", "stride-100B", "stride-256"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
