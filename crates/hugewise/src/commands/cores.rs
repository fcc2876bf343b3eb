//! `hugewise measure cores`: how far CPUs are from each other, and which of them share a core.

use anyhow::Context;
use measure::cores::{Error, Spec};

use super::Desk;
use super::measuring::{self, unless_stopped};
use crate::cli::typed;
use crate::ui::Outcome;

/// Rounds per pair: medians within a few per cent, a fifth of a second per pair.
const ROUNDS: u32 = 31;
const QUICK_ROUNDS: u32 = 9;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Cores) -> anyhow::Result<Outcome> {
    measuring::run(desk.ui.look(), desk, |desk, _, stop| {
        let cpus = match typed.cpus.is_empty() {
            true => measure::kernelops::cpus(&[]).context("which CPUs may be used")?,
            false => typed.cpus.clone(),
        };
        let rounds = if typed.quick { QUICK_ROUNDS } else { ROUNDS };
        desk.ui.note(&format!("timing every pair of {} CPUs", cpus.len()));
        let mut progress = desk.ui.progress();
        let measured = measure::cores::run(&Spec { cpus, rounds }, &mut progress, &|| stop.is_asked());
        unless_stopped(measured, |error| matches!(error, Error::Interrupted))
    })
}
