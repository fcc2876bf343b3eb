//! `hugewise simulate scheduler`: virtual CPUs on a host that a file describes, or IBM's study of 2006.

use anyhow::{Context, anyhow};
use host::{Input, Snapshot};
use model::Warning;
use studies::scheduler::explain::preset;
use studies::scheduler::{Schedule, file, simulate};

use crate::cli::args::Scheduler;
use crate::commands::session::Session;
use crate::ui::Outcome;

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &Scheduler) -> anyhow::Result<Outcome> {
    let form = session.form::<Schedule>()?;
    let schedule = match args.preset {
        Some(which) => preset(which, session.seed).map_err(|error| anyhow!("--preset {}: {error}", which.name()))?,
        None => of_file(session, args)?,
    };
    let warnings = warnings(&schedule);
    session.give_about(&Snapshot::take(&session.source), warnings, schedule, form)
}

fn of_file(session: &Session<'_>, args: &Scheduler) -> anyhow::Result<Schedule> {
    let path = args.file.as_ref();
    let path = path.context("name a file, or a publication with --preset")?;
    let name = path.display().to_string();
    let text = Input::Configuration.text(path).with_context(|| name.clone())?;
    let scenario = file::parse(&name, &text, args.policy, session.seed)?;
    simulate(&scenario).map_err(|error| anyhow!("{name}: {error}"))
}

/// What a reader has to know before believing the numbers.
fn warnings(schedule: &Schedule) -> Vec<Warning> {
    let explained = schedule.explained.as_ref().map(|_| {
        Warning::new(
            "explains",
            "shares of CPUs are an input and throughput is fitted: this explains the tables, and predicts only the runs in the last of its tables. \
             Node 1 occurs in the paper only together with ESX Server 2.5.2, SMT and NUMA, so that the tables cannot tell these apart",
        )
    });
    let limited = (schedule.used != schedule.topology).then(|| {
        let text = format!(
            "{} uses at most 16 logical CPUs: the SMT siblings of this host's {} are left out",
            schedule.policy.name(),
            schedule.topology.cpus()
        );
        Warning::new("cpu-limit", text)
    });
    explained.into_iter().chain(limited).collect()
}
