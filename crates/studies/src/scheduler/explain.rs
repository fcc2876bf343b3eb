//! Explanations of IBM's tables: what each is fitted to, how well it then agrees, and what it predicts for the run that would separate them.

use super::Policy;
pub use super::explained::{Explained, Explains, Explanation, Fit, Fitted, FittedOn, Parameter, Predicts};
use super::fit::{Model, fitted, hops, work_pct};
use super::published::{by_policy, scenario};
use super::result::Schedule;
use model::names;
use model::placement::{Published, PublishedRun, ibm_2006};

names! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Preset, "a preset" {
        Ibm2006 = "ibm-2006",
        /// Table 2.
        Table2 = "ibm-2006-table-2",
        /// Table 3.
        Table3 = "ibm-2006-table-3",
        /// Table 4.
        Table4 = "ibm-2006-table-4",
    }
}

impl Preset {
    fn has(self, run: &PublishedRun) -> bool {
        match self {
            Self::Ibm2006 => true,
            Self::Table2 => run.tables.contains(&2),
            Self::Table3 => run.tables.contains(&3),
            Self::Table4 => run.tables.contains(&4),
        }
    }
}

/// Tables that a preset shows, and the run that would separate their explanations, as simulated with node 1 slow.
///
/// # Errors
/// None but a mistake in the data that the program carries.
pub fn preset(which: Preset, seed: u64) -> Result<Schedule, String> {
    let tables = ibm_2006().map_err(|error| error.to_string())?;
    let models: Vec<Model> = Explanation::ALL
        .into_iter()
        .map(|explanation| fitted(explanation, &tables, seed))
        .collect::<Result<_, _>>()?;
    let shown: Vec<&PublishedRun> = tables.runs.iter().filter(|run| which.has(run)).collect();
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

fn explains(run: &PublishedRun, models: &[Model], seed: u64) -> Result<Explains, String> {
    let each: Vec<(f64, Schedule)> = models
        .iter()
        .map(|model| {
            let (work, schedule) = work_pct(&scenario(run, &model.costs, seed))?;
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
        node: run.node,
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
fn separating(tables: &Published, models: &[Model], seed: u64) -> Result<(Vec<Predicts>, Schedule), String> {
    let duty = tables.runs.iter().map(|run| run.cpu_pct).sum::<f64>() / tables.runs.len().max(1) as f64 / 200.0;
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
fn published_mean(tables: &Published, policy: Policy, node: u32) -> Option<f64> {
    let version = policy.name().trim_start_matches("esx-");
    let is_it =
        |run: &&PublishedRun| run.server == "x3950 2x2" && run.hyperthreading && run.esx == version && run.node == node;
    let found: Vec<f64> = tables.runs.iter().filter(is_it).map(|run| run.throughput).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
