//! `hugewise schema` and `hugewise completions`: what programs and shells want to know.

use anyhow::bail;
use clap::CommandFactory;
use model::collapse::Collapse;
use model::compare::Compare;
use model::cores::Cores;
use model::guest::Guest;
use model::kernelops::KernelOps;
use model::latency::Latency;
use model::migration::Migration;
use model::placement::{self, Check, Published, Recording};
use model::plan::Plan;
use model::setup::{Applied, Status, Undone, Verified};
use model::suite::{Suite, SuiteList};
use model::tlb::Tlb;
use sim::scheduler::Schedule;
use sim::size::Sizing;
use sim::translation::study::Simulation;
use sim::translation::study::predict::Prediction;
use sim::translation::sweep::SweepResult;

use super::Desk;
use crate::cli::{Cli, typed};
use crate::results::{Checkup, Diff, Doctor, Explain, OneProcess, ProcessList, ReachTable, VmList};
use crate::show::{Show, schema};
use crate::ui::Outcome;

/// Names and schemas of all results.
pub(crate) fn all() -> [(&'static str, schemars::Schema); 32] {
    [
        named::<Applied>(),
        named::<Checkup>(),
        named::<Collapse>(),
        named::<Compare>(),
        named::<Cores>(),
        named::<Diff>(),
        named::<Doctor>(),
        named::<Explain>(),
        named::<Guest>(),
        named::<KernelOps>(),
        named::<Latency>(),
        named::<Migration>(),
        named::<OneProcess>(),
        named::<Recording>(),
        named::<Check>(),
        named::<placement::Diff>(),
        named::<Published>(),
        named::<Plan>(),
        named::<Prediction>(),
        named::<ProcessList>(),
        named::<ReachTable>(),
        named::<Schedule>(),
        named::<Simulation>(),
        named::<Sizing>(),
        named::<Status>(),
        named::<Suite>(),
        named::<SuiteList>(),
        named::<SweepResult>(),
        named::<Tlb>(),
        named::<Undone>(),
        named::<Verified>(),
        named::<VmList>(),
    ]
}

fn named<T: Show>() -> (&'static str, schemars::Schema) {
    (T::NAME, schema::<T>())
}

/// Runs `hugewise schema`.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Schema) -> anyhow::Result<Outcome> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let text = match &typed.name {
        None => names.join("\n"),
        Some(name) => match all.iter().find(|(known, _)| known == name) {
            Some((_, schema)) => serde_json::to_string_pretty(schema)?,
            None => bail!("`{name}` is not a result (write {})", names.join(", ")),
        },
    };
    desk.ui.result(format!("{text}\n").as_bytes())?;
    Ok(Outcome::Done)
}

/// Runs `hugewise completions`.
pub(super) fn completions(desk: &mut Desk<'_>, typed: &typed::Completions) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(typed.shell, &mut Cli::command(), "hugewise", &mut script);
    desk.ui.result(&script)?;
    Ok(Outcome::Done)
}
