//! `hugewise suite --list`: what would run, how long it takes, and what is missing.

use host::Snapshot;
use model::suite::{Lack, Listed, SuiteList};

use super::super::measuring::available;
use super::super::session::Session;
use crate::recipes::experiments::Planned;
use crate::ui::Outcome;

/// Runs it; nothing is started.
pub(super) fn run(session: &mut Session<'_>, planned: &[Planned]) -> anyhow::Result<Outcome> {
    let form = session.form::<SuiteList>()?;
    let snapshot = Snapshot::take(&session.source);
    let listed = planned.iter().map(|planned| Listed {
        experiment: planned.experiment.clone(),
        seconds: planned.time.as_secs_f64(),
        lacking: lacking(planned, &snapshot),
    });
    let list = SuiteList {
        experiments: listed.collect(),
    };
    session.give_about(&snapshot, Vec::new(), list, form)
}

/// What an experiment needs and is not here.
pub(super) fn lacking(planned: &Planned, snapshot: &Snapshot) -> Vec<Lack> {
    let programs = planned.chosen.lacking().map(|need| Lack::Program {
        program: need.program.clone(),
        package: need.install.clone(),
    });
    // Where it cannot be read, it is tried.
    let available = available(snapshot).ok();
    let memory = available.filter(|available| *available < planned.memory);
    let memory = memory.map(|available| Lack::Memory {
        needed: planned.memory.0,
        available: available.0,
    });
    programs.chain(memory).collect()
}
