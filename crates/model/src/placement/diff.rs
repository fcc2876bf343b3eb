//! The shape of a difference between recordings, and of published ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// Two sides, each of one or more recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// What is compared.
    pub sides: [Side; 2],
    /// What differs: throughput is CPU time in each second times work for each CPU second.
    pub parts: Vec<Part>,
    /// What weakens it.
    pub caveats: Vec<Caveat>,
}

/// The recordings of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Their files.
    pub files: Vec<String>,
    /// The name of the program.
    pub name: String,
    /// The work of each, if it was given; else all did the same work.
    pub work: Vec<f64>,
}

/// One quantity on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Which.
    pub what: Quantity,
    /// Medians of both sides; `null` where it is not known.
    pub values: [Option<f64>; 2],
    /// The second over the first, run by run; `null` where one of them is zero or not known. One run has no interval.
    pub ratio: Option<Estimate>,
}

/// What can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Work in each second; without work 1 / seconds.
    Throughput,
    /// CPU seconds in each second.
    CpuShare,
    /// Work for each CPU second; without work 1 / CPU seconds.
    Efficiency,
    /// Moves to an SMT sibling for each CPU second.
    SiblingMoves,
    /// Other moves within a node.
    NearMoves,
    /// Moves to another socket or node.
    FarMoves,
    /// Preemptions for each CPU second.
    Preemptions,
    /// Seconds that preempted threads waited for each CPU second.
    PreemptedWait,
    /// Share of CPU time on the node with most of it.
    MainNode,
    /// Share of accesses that would be local by pages and CPU time.
    Locality,
}

/// What weakens a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Caveat {
    /// The recordings are of different machines or kernels.
    OtherMachine,
    /// They were made by different methods.
    OtherMethod,
    /// Records are missing.
    Incomplete,
    /// One of the sides has one run only: there is no interval.
    OneRun,
    /// No work was given, and a recording did not last from start to end of its program.
    UnknownWork,
    /// No work was given: that both did the same is an assumption.
    SameWork,
    /// It shows what changed, not what caused it.
    NotSeparated,
}
