//! Explanations of IBM's tables: what each is fitted to, how well it then agrees, and what it predicts for the run that would separate them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;
use super::fit::{Model, fitted, hops, work_pct};
use super::published::{Run, Tables, by_policy, ibm_2006};
use super::result::Schedule;
use crate::names::names;

/// Which tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// All of them.
    Ibm2006,
    /// Table 2.
    Table2,
    /// Table 3.
    Table3,
    /// Table 4.
    Table4,
}

names!(Preset, "is no preset", {
    Ibm2006 => "ibm-2006",
    Table2 => "ibm-2006-table-2",
    Table3 => "ibm-2006-table-3",
    Table4 => "ibm-2006-table-4",
});

impl Preset {
    fn has(self, run: &Run) -> bool {
        match self {
            Self::Ibm2006 => true,
            Self::Table2 => run.tables.contains(&2),
            Self::Table3 => run.tables.contains(&3),
            Self::Table4 => run.tables.contains(&4),
        }
    }
}

/// Why runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Explanation {
    /// They do not: CPU time alone counts.
    NoCosts,
    /// Moves between siblings are expensive.
    SiblingMoves,
    /// Node 1 is slow.
    SlowNode,
    /// Node 1 is slow, moves and busy siblings have their usual costs.
    SlowNodeAndUsualCosts,
}

impl Explanation {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::NoCosts,
        Self::SiblingMoves,
        Self::SlowNode,
        Self::SlowNodeAndUsualCosts,
    ];
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

/// Tables that a preset shows, and the run that would separate their explanations, as simulated with node 1 slow.
///
/// # Errors
/// None but a mistake in the data that the program carries.
pub fn preset(which: Preset, seed: u64) -> Result<Schedule, String> {
    let tables = ibm_2006()?;
    let models: Vec<Model> = Explanation::ALL
        .into_iter()
        .map(|explanation| fitted(explanation, &tables, seed))
        .collect::<Result<_, _>>()?;
    let shown: Vec<&Run> = tables.runs.iter().filter(|run| which.has(run)).collect();
    let runs: Vec<Explains> = shown
        .iter()
        .map(|run| explains(run, &models, seed))
        .collect::<Result<_, _>>()?;
    let (separating, schedule) = separating(&tables, &models, seed)?;
    let explanations = Explanation::ALL.into_iter().zip(&models).enumerate();
    let explained = Explained {
        explanations: explanations
            .map(|(place, (explanation, model))| judged(explanation, model, place, &runs))
            .collect(),
        share_error: share_error(&runs),
        source: tables.source.clone(),
        sibling_chance: Fit {
            parameter: Parameter::SiblingChance,
            value: hops(&tables)?,
            on: FittedOn::SharesOfRunOne,
        },
        runs,
        separating,
    };
    Ok(Schedule {
        explained: Some(explained),
        ..schedule
    })
}

fn explains(run: &Run, models: &[Model], seed: u64) -> Result<Explains, String> {
    let each: Vec<(f64, Schedule)> = models
        .iter()
        .map(|model| {
            let (work, schedule) = work_pct(&run.scenario(&model.costs, seed))?;
            Ok((model.rate * work, schedule))
        })
        .collect::<Result<_, String>>()?;
    let shown = each.first().map(|(_, schedule)| schedule);
    let cpus = shown.map(|schedule| &schedule.cpus[..]).unwrap_or_default();
    let moves = |kind: usize| {
        shown.map_or(0.0, |schedule| {
            schedule.vms.iter().map(|vm| vm.moves[kind]).sum::<u64>() as f64 / schedule.seconds
        })
    };
    Ok(Explains {
        tables: run.tables.clone(),
        server: run.server.clone(),
        run: run.run.clone(),
        esx: run.esx.clone(),
        hyperthreading: run.hyperthreading,
        node: run.node(),
        published: run.throughput,
        published_shares: run.shares.clone(),
        simulated_shares: cpus.iter().map(|cpu| (cpu.guests + cpu.console) * 100.0).collect(),
        moves_per_s: std::array::from_fn(moves),
        simulated: each.iter().map(|(throughput, _)| *throughput).collect(),
    })
}

fn judged(explanation: Explanation, model: &Model, place: usize, runs: &[Explains]) -> Fitted {
    let errors = runs
        .iter()
        .map(|run| (run.simulated[place] / run.published - 1.0).abs() * 100.0);
    Fitted {
        explanation,
        fits: model.fits.clone(),
        mean_error_pct: errors.clone().sum::<f64>() / runs.len().max(1) as f64,
        max_error_pct: errors.fold(0.0, f64::max),
    }
}

fn share_error(runs: &[Explains]) -> f64 {
    let pairs = runs
        .iter()
        .flat_map(|run| run.published_shares.iter().zip(&run.simulated_shares));
    let errors: Vec<f64> = pairs
        .map(|(published, simulated)| (published - simulated).abs())
        .collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

/// Both policies on both nodes of the x3950, and the last of these runs with node 1 slow.
fn separating(tables: &Tables, models: &[Model], seed: u64) -> Result<(Vec<Predicts>, Schedule), String> {
    let duty = tables.runs.iter().map(Run::cpu_pct).sum::<f64>() / tables.runs.len().max(1) as f64 / 200.0;
    let hops = hops(tables)?;
    let (mut rows, mut last) = (Vec::new(), None);
    for (policy, node) in [
        (Policy::Esx252, 0),
        (Policy::Esx252, 1),
        (Policy::Esx253, 0),
        (Policy::Esx253, 1),
    ] {
        let mut simulated = Vec::new();
        for (explanation, model) in Explanation::ALL.into_iter().zip(models) {
            let (work, schedule) = work_pct(&by_policy(policy, node, duty, hops, &model.costs, seed))?;
            simulated.push(model.rate * work);
            if explanation == Explanation::SlowNode {
                last = Some(schedule);
            }
        }
        rows.push(Predicts {
            policy,
            node,
            published: published_mean(tables, policy, node),
            simulated,
        });
    }
    Ok((rows, last.ok_or("no explanation")?))
}

/// The mean of the runs with this policy on that node of the x3950 2x2 with SMT.
fn published_mean(tables: &Tables, policy: Policy, node: u32) -> Option<f64> {
    let version = policy.name().trim_start_matches("esx-");
    let is_it =
        |run: &&Run| run.server == "x3950 2x2" && run.hyperthreading && run.esx == version && run.node() == node;
    let found: Vec<f64> = tables.runs.iter().filter(is_it).map(|run| run.throughput).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
