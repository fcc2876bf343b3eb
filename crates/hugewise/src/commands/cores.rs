//! `hugewise measure cores`: how far CPUs are from each other, and which of them share a core.

use anyhow::Context;
use host::Snapshot;
use measure::cores::{Error, Spec};
use model::cores::Cores;

use super::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Rounds per pair: medians within a few per cent, a fifth of a second per pair.
const ROUNDS: u32 = 31;
const QUICK_ROUNDS: u32 = 9;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Cores) -> anyhow::Result<Outcome> {
    desk.must_be_live("measuring")?;
    let form = desk.form::<Cores>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let cpus = if typed.cpus.is_empty() {
        measure::kernelops::cpus(&[]).context("which CPUs may be used")?
    } else {
        typed.cpus.clone()
    };
    let rounds = if typed.quick { QUICK_ROUNDS } else { ROUNDS };
    let stop = Stop::on_signals()?;
    desk.ui.note(&format!("timing every pair of {} CPUs", cpus.len()));
    let mut progress = desk.ui.progress();
    let measured = measure::cores::run(&Spec { cpus, rounds }, &mut progress, &|| stop.is_asked());
    drop(progress);
    let (cores, warnings) = match measured {
        Ok(measured) => measured,
        Err(Error::Interrupted) => return Ok(Outcome::Interrupted),
        Err(error) => return Err(error.into()),
    };
    let result = desk.about(&snapshot, warnings, cores);
    desk.give(&result, form)
}
