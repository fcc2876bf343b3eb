//! Fits of the explanations of IBM's tables: each parameter to the runs that it is named with, and to no others.

use super::Costs;
use super::explained::{Explanation, Fit, FittedOn, Parameter};
use super::published::scenario;
use super::result::{Schedule, simulate};
use super::scenario::Scenario;
use model::placement::{Published, PublishedRun};

/// An explanation with its costs, and what a per cent of a CPU then does.
pub(super) struct Model {
    pub(super) costs: Costs,
    pub(super) rate: f64,
    pub(super) fits: Vec<Fit>,
}

/// Per cent of a CPU at full rate that a run has done.
pub(super) fn work_pct(scenario: &Scenario) -> Result<(f64, Schedule), String> {
    let schedule = simulate(scenario)?;
    let work: f64 = schedule.vms.iter().map(|vm| vm.work_s).sum();
    Ok((work / schedule.seconds * 100.0, schedule))
}

/// The mean of published throughput for each per cent of work, over some runs.
fn rate_of(tables: &Published, costs: &Costs, seed: u64, is_of: impl Fn(&PublishedRun) -> bool) -> Result<f64, String> {
    let runs = tables.runs.iter().filter(|run| is_of(run));
    let rates: Vec<f64> = runs
        .map(|run| Ok(run.throughput / work_pct(&scenario(run, costs, seed))?.0))
        .collect::<Result<_, String>>()?;
    Ok(rates.iter().sum::<f64>() / rates.len().max(1) as f64)
}

pub(super) fn fitted(explanation: Explanation, tables: &Published, seed: u64) -> Result<Model, String> {
    let costs = match explanation {
        Explanation::SlowNodeAndUsualCosts => Costs {
            sibling_busy: 0.35,
            warm_up_ns: [30_000, 1_000_000, 1_500_000, 1_500_000],
            ..Costs::none()
        },
        _ => Costs::none(),
    };
    let is_on = |node: u32| move |run: &PublishedRun| run.node == node;
    let fit = |parameter, value, on| Fit { parameter, value, on };
    if explanation == Explanation::NoCosts {
        let rate = rate_of(tables, &costs, seed, |_| true)?;
        let fits = vec![fit(Parameter::Rate, rate, FittedOn::AllRuns)];
        return Ok(Model { costs, rate, fits });
    }
    let rate = rate_of(tables, &costs, seed, is_on(0))?;
    let mut fits = vec![fit(Parameter::Rate, rate, FittedOn::NodeZero)];
    let costs = match explanation {
        Explanation::SiblingMoves => {
            let costs = expensive_moves(run_one(tables)?, rate, seed)?;
            let us = costs.warm_up_ns[0] as f64 / 1e3;
            fits.push(fit(Parameter::SiblingMoveUs, us, FittedOn::RunOne));
            costs
        }
        _ => {
            let slow = rate_of(tables, &costs, seed, is_on(1))? / rate;
            fits.push(fit(Parameter::NodeRate, slow, FittedOn::NodeOne));
            Costs {
                node_rates: vec![1.0, slow.min(1.0)],
                ..costs
            }
        }
    };
    Ok(Model { costs, rate, fits })
}

/// The run that shows moves between siblings.
fn run_one(tables: &Published) -> Result<&PublishedRun, String> {
    let is_it = |run: &&PublishedRun| run.server == "x3950 2x2" && run.run == "Run 1" && run.tables == [2, 4];
    tables
        .runs
        .iter()
        .find(is_it)
        .ok_or_else(|| "the tables have no run 1".to_owned())
}

/// What a move to the sibling has to cost so that this run comes out: halved intervals, to a microsecond.
fn expensive_moves(run: &PublishedRun, rate: f64, seed: u64) -> Result<Costs, String> {
    let costs = |us: u64| Costs {
        warm_up_ns: [us * 1000, 0, 0, 0],
        ..Costs::none()
    };
    let (mut low, mut high) = (0, 1 << 15);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let done = rate * work_pct(&scenario(run, &costs(middle), seed))?.0;
        if done > run.throughput {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(costs(high))
}

/// The part of wake-ups that change the sibling, if each wake-up chooses one anew and the times on both are as published.
pub(super) fn hops(tables: &Published) -> Result<f64, String> {
    let part = run_one(tables)?.sibling_pct / 100.0;
    Ok(2.0 * part * (1.0 - part))
}
