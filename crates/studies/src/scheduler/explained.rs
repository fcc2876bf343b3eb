//! A publication beside what is simulated: explanations with what was fitted, and what each makes of the runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;

model::names! {
    /// Why runs differ.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Explanation {
        /// They do not: CPU time alone counts.
        NoCosts = "no-costs",
        /// Moves between siblings are expensive.
        SiblingMoves = "sibling-moves",
        /// Node 1 is slow.
        SlowNode = "slow-node",
        /// Node 1 is slow, moves and busy siblings have their usual costs.
        SlowNodeAndUsualCosts = "slow-node-and-usual-costs",
    }
}

/// What was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Operations a second for each per cent of a CPU.
    Rate,
    /// Microseconds of a move to the sibling.
    SiblingMoveUs,
    /// The rate of node 1 relative to node 0.
    NodeRate,
    /// The part of wake-ups that go to the sibling under ESX Server 2.5.2.
    SiblingChance,
}

/// What it was fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FittedOn {
    /// Throughput of all twelve runs of tables 2 to 4.
    AllRuns,
    /// Throughput of the nine runs on node 0.
    NodeZero,
    /// Throughput of the three runs on node 1 (tables 2 and 4).
    NodeOne,
    /// Throughput of run 1 of table 2, x3950 2x2.
    RunOne,
    /// Shares of CPUs of that run.
    SharesOfRunOne,
}

impl FittedOn {
    /// Was throughput of this run among it?
    pub fn has(self, run: &Explains) -> bool {
        match self {
            Self::AllRuns => true,
            Self::NodeZero => run.node == 0,
            Self::NodeOne => run.node == 1,
            Self::RunOne => run.node == 1 && run.run == "Run 1",
            Self::SharesOfRunOne => false,
        }
    }
}

/// One fitted parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Which.
    pub parameter: Parameter,
    /// Its value.
    pub value: f64,
    /// What it was fitted to.
    pub on: FittedOn,
}

/// One explanation, fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitted {
    /// Which.
    pub explanation: Explanation,
    /// What was fitted, and to what.
    pub fits: Vec<Fit>,
    /// Mean distance of simulated from published throughput over the runs shown, in per cent.
    pub mean_error_pct: f64,
    /// The largest one.
    pub max_error_pct: f64,
}

/// A published run and what each explanation makes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explains {
    /// Tables that it is in.
    pub tables: Vec<u32>,
    /// The server.
    pub server: String,
    /// The run.
    pub run: String,
    /// The version of ESX Server.
    pub esx: String,
    /// Was SMT on in the BIOS?
    pub hyperthreading: bool,
    /// The node that the guest was on.
    pub node: u32,
    /// Published throughput, operations a second.
    pub published: f64,
    /// Simulated throughput, by explanation.
    pub simulated: Vec<f64>,
    /// Published per cent of time by logical CPU.
    pub published_shares: Vec<f64>,
    /// Simulated per cent of time by logical CPU: the published ones were its input.
    pub simulated_shares: Vec<f64>,
    /// Moves a second: to a sibling, core, socket, node.
    pub moves_per_s: [f64; 4],
}

/// A run that the policy decides, with nothing but the guest's CPU time as input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicts {
    /// The policy.
    pub policy: Policy,
    /// The node that the guest is pinned to.
    pub node: u32,
    /// The mean of the published runs; none if the paper has none.
    pub published: Option<f64>,
    /// Simulated throughput, by explanation.
    pub simulated: Vec<f64>,
}

/// A publication beside what is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Where it is published.
    pub source: String,
    /// The explanations.
    pub explanations: Vec<Fitted>,
    /// The runs.
    pub runs: Vec<Explains>,
    /// Mean distance of simulated from published shares, in per cent of a CPU.
    pub share_error: f64,
    /// How often wake-ups go to the sibling where the policy finds that free.
    pub sibling_chance: Fit,
    /// Both policies on both nodes: the last one is the run that would separate the explanations.
    pub separating: Vec<Predicts>,
}
