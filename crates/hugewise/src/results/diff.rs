//! What `hugewise diff` answers: how two results or two machines differ.

use model::findings::Severity;
use model::latency::{Access, Pattern};
use model::process::Unseen;
use model::{Backing, Bytes, Estimate, Machine, PageKind, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How B differs from A. What is equal is left out, but for points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The first of the two.
    pub a: Side,
    /// The second of the two.
    pub b: Side,
    /// Settings and hardware that differ; counters and amounts that are in use are no settings.
    pub settings: Vec<SettingChange>,
    /// Rules that found more in one of them, or could be judged in one only; `null` if one of them has no findings.
    pub findings: Option<Vec<FindingChange>>,
    /// Programs whose page kinds differ, largest change first; `null` if one of them has no processes.
    pub backing: Option<Vec<BackingChange>>,
    /// Every measured point; `null` if one of them has none.
    pub points: Option<Points>,
    /// What is not compared: `tlb`, `guest`, `vms`.
    pub left_out: Vec<String>,
    /// Processes that are not compared; `null` if neither side has any.
    #[serde(default)]
    pub unseen: Option<UnseenProcesses>,
}

/// Processes of each side that are not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnseenProcesses {
    /// Those of A; `null` if none of its processes is known.
    pub a: Option<Unseen>,
    /// Those of B; `null` if none of its processes is known.
    pub b: Option<Unseen>,
}

impl UnseenProcesses {
    /// The sides by their names.
    pub fn sides(&self) -> [(&'static str, Option<&Unseen>); 2] {
        [("A", self.a.as_ref()), ("B", self.b.as_ref())]
    }

    /// Were all processes of both sides read?
    pub fn is_none(&self) -> bool {
        self.sides().iter().all(|(_, side)| side.is_some_and(Unseen::is_none))
    }
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Its file or directory.
    pub file: String,
    /// `latency`, `checkup`, `compare`, `doctor`, `ps` or `machine`.
    pub what: String,
    /// The machine it is about.
    pub machine: Machine,
    /// The command that made it; empty for a captured machine.
    pub command: Vec<String>,
    /// When it was made, RFC 3339; `null` for a captured machine.
    pub started: Option<String>,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// Its place in the inventory of a checkup, such as `thp.enabled` or `pools[2M].nr`.
    pub setting: String,
    /// Its value in A.
    pub a: Reading<String>,
    /// Its value in B.
    pub b: Reading<String>,
}

/// A rule that found something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingChange {
    /// The rule's id.
    pub id: String,
    /// The rule's name.
    pub name: String,
    /// The worst severity of its findings in both.
    pub severity: Severity,
    /// Findings in A; `null` if it found nothing there, but could not be judged, or in part.
    pub a: Option<usize>,
    /// The same in B.
    pub b: Option<usize>,
}

/// A program that has other page kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackingChange {
    /// Its short name; `null` for the sum of all processes.
    pub name: Option<String>,
    /// What backs all processes of that name in A; `null` if it is not listed there.
    pub a: Option<Backing>,
    /// The same in B.
    pub b: Option<Backing>,
}

/// The measured points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Points {
    /// Two runs of one machine may differ by this share without a verdict.
    pub allowed: f64,
    /// The share in which each of the intervals behind the verdicts may miss, so that all of them hold together in 95 %.
    pub level: f64,
    /// Each point of A or B.
    pub points: Vec<PointChange>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointChange {
    /// Which.
    #[serde(flatten)]
    pub of: Of,
    /// Its value in A: ns, or how many times better than the reference.
    pub a: Option<Estimate>,
    /// The same in B.
    pub b: Option<Estimate>,
    /// B over A.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval, for this point alone; `null` of too few visits.
    pub low: Option<f64>,
    /// Upper end of that.
    pub high: Option<f64>,
    /// What that comes to among all points: the interval that holds together with those of all others lies beyond `allowed`, or
    /// within.
    pub verdict: Change,
    /// Why there is no verdict; `null` if there is one, or if it takes more data.
    pub gap: Option<Gap>,
}

/// What a point is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Of {
    /// The time of a step. Less is better.
    Latency {
        /// Page kind.
        kind: PageKind,
        /// Working set.
        bytes: Bytes,
        /// Order of visits.
        pattern: Pattern,
        /// Loads only, or loads and stores.
        access: Access,
    },
    /// How many times better an arm is than the reference of its comparison. More is better.
    Gain {
        /// The arm.
        arm: String,
        /// The metric.
        metric: String,
    },
}

model::names! {
    /// B against A.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Change {
        /// B is worse, beyond what is allowed.
        Worse = "worse",
        /// B is better, beyond what is allowed.
        Better = "better",
        /// The difference is less than what is allowed.
        NoDifference = "no difference",
        /// The interval does not decide it.
        Inconclusive = "inconclusive",
        /// There is nothing to compare.
        NotCompared = "not compared",
    }
}

model::names! {
    /// Why a point has no verdict.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Gap {
        /// A alone has it.
        OnlyInA = "only A has it",
        /// B alone has it.
        OnlyInB = "only B has it",
        /// One of them has no value: it was not measured there, or did not converge.
        NotMeasured = "no value in both",
        /// One of them has no visits or no interval.
        NoInterval = "too few visits",
    }
}

impl Points {
    /// How many have that verdict.
    pub fn count(&self, verdict: Change) -> usize {
        self.points.iter().filter(|point| point.verdict == verdict).count()
    }
}

impl FindingChange {
    /// Did B find more, that a warning or an error is?
    pub fn is_new(&self) -> bool {
        self.severity >= Severity::Warning && self.b.is_some_and(|b| self.a.is_some_and(|a| b > a))
    }
}

impl BackingChange {
    /// The share on huge pages in A and B, where both list it.
    pub fn coverage(&self) -> Option<(f64, f64)> {
        Some((self.a.as_ref()?.coverage()?, self.b.as_ref()?.coverage()?))
    }
}
