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
use predict::Prediction;
use programs::image::Images;
use studies::claims::Claims;
use studies::host_memory::HostMemory;
use studies::scheduler::Schedule;
use studies::size::Sizing;
use translation::study::Simulation;

use super::session::Session;
use crate::cli::{Cli, args};
use crate::results::{Checkup, Diff, Doctor, Explain, OneProcess, ProcessList, ReachTable, VmList};
use crate::show::{Shape, reads, schema};
use crate::ui::Outcome;

/// What is done with a result of whichever kind.
pub(super) trait WithResult {
    type Outcome;
    /// Does it with a result of this kind.
    fn with<T: Shape>(self) -> Self::Outcome;
}

/// The kinds of results, in one list.
macro_rules! kinds {
    ($($kind:ty,)+) => {
        /// Names and schemas of all results.
        pub(crate) fn all() -> Vec<(&'static str, schemars::Schema)> {
            vec![$((<$kind>::NAME, schema::<$kind>())),+]
        }

        /// Does it with the kind of result that a schema names, if it is known.
        pub(super) fn by_schema<W: WithResult>(schema: &str, with: W) -> Option<W::Outcome> {
            $(if reads::<$kind>(schema) {
                return Some(with.with::<$kind>());
            })+
            None
        }
    };
}

kinds! {
    Applied,
    Checkup,
    Claims,
    Collapse,
    Compare,
    Cores,
    Diff,
    Doctor,
    Explain,
    Guest,
    HostMemory,
    Images,
    KernelOps,
    Latency,
    Migration,
    OneProcess,
    Recording,
    Check,
    placement::Diff,
    Published,
    Plan,
    Prediction,
    ProcessList,
    ReachTable,
    Schedule,
    Simulation,
    Sizing,
    Status,
    Suite,
    SuiteList,
    Tlb,
    Undone,
    Verified,
    VmList,
}

/// Runs `hugewise schema`.
pub(super) fn run(session: &mut Session<'_>, args: &args::Schema) -> anyhow::Result<Outcome> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let text = match &args.name {
        None => names.join("\n"),
        Some(name) => match all.iter().find(|(known, _)| known == name) {
            Some((_, schema)) => serde_json::to_string_pretty(schema)?,
            None => bail!("`{name}` is not a result (write {})", names.join(", ")),
        },
    };
    session.ui.result(format!("{text}\n").as_bytes())?;
    Ok(Outcome::Done)
}

/// Runs `hugewise completions`.
pub(super) fn completions(session: &mut Session<'_>, args: &args::Completions) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hugewise", &mut script);
    session.ui.result(&script)?;
    Ok(Outcome::Done)
}
