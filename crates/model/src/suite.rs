//! What the published experiments come to on this machine, a page each, and which of them can run here.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Warning;
use crate::compare::Compare;
use crate::gc::GcLog;
use crate::tlb::HostBacking;

/// Experiments of publications, as they came out here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// The page size of the host below this machine, from timing; `null` if it was not timed.
    pub host: Option<HostBacking>,
    /// A page for each experiment.
    pub pages: Vec<Page>,
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// What it is.
    pub experiment: Experiment,
    /// What came of it.
    pub outcome: Outcome,
    /// Seconds that it took.
    pub seconds: f64,
    /// What the garbage collectors' logs say, by arm, a log for each run; empty of a program that is none of Java.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gc: BTreeMap<String, Vec<GcLog>>,
}

/// An experiment: what is run, and what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Its name, for `--only`.
    pub name: String,
    /// What it asks, in a line.
    pub title: String,
    /// The recipe with its variant and parameters, as `compare --workload` takes it.
    pub workload: String,
    /// The arms, the reference first.
    pub arms: Vec<String>,
    /// What was published; experiments of one's own may have nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Why the figure here may differ from that, a sentence each.
    pub differs: Vec<String>,
    /// What must be said of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The figure, in a sentence.
    pub figure: String,
    /// Where it was published.
    pub source: String,
}

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was made.
    Compared {
        /// Runs and verdicts.
        compare: Box<Compare>,
        /// Reservations about them.
        warnings: Vec<Warning>,
    },
    /// Something that it needs is not here.
    Lacking(Vec<Lack>),
    /// It could not be made, and why.
    Failed(String),
    /// The time was over before.
    NoTime,
}

/// Something that an experiment needs and that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// A program.
    Program {
        /// Its name.
        program: String,
        /// The package of Debian that brings it.
        package: String,
    },
    /// Memory.
    Memory {
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
}

/// What would run, and what is missing for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteList {
    /// Every experiment that was asked for.
    pub experiments: Vec<Listed>,
}

/// An experiment that has not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// What it is.
    pub experiment: Experiment,
    /// Seconds that it may take.
    pub seconds: f64,
    /// What is missing; it runs if nothing is.
    pub lacking: Vec<Lack>,
}

impl Experiment {
    /// The published figure, or a dash.
    pub fn figure(&self) -> &str {
        self.published.as_ref().map_or("-", |published| &published.figure)
    }
}

impl Page {
    /// The comparison, if it was made.
    pub fn compare(&self) -> Option<&Compare> {
        match &self.outcome {
            Outcome::Compared { compare, .. } => Some(compare),
            _ => None,
        }
    }
}

impl SuiteList {
    /// The packages of Debian that bring all that is missing, each once.
    pub fn packages(&self) -> Vec<&str> {
        let lacking = self.experiments.iter().flat_map(|listed| &listed.lacking);
        let packages: BTreeSet<&str> = lacking.filter_map(Lack::package).collect();
        packages.into_iter().collect()
    }
}

impl Lack {
    /// The package of Debian that brings it.
    pub fn package(&self) -> Option<&str> {
        match self {
            Self::Program { package, .. } => Some(package),
            Self::Memory { .. } => None,
        }
    }
}
