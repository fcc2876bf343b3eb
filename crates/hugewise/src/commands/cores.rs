//! `hugewise measure cores`: how far CPUs are from each other, and which of them share a core.

use anyhow::Context;
use measure::cores::Spec;

use super::desk::Desk;
use super::measuring::{self, unless_stopped};
use crate::cli::typed;
use crate::ui::Outcome;

/// Rounds per pair: medians within a few per cent, a fifth of a second per pair.
const ROUNDS: u32 = 31;
const QUICK_ROUNDS: u32 = 9;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Cores) -> anyhow::Result<Outcome> {
    measuring::run(desk.ui.look(), desk, |desk, _, stop| {
        let cpus = match typed.cpus.is_empty() {
            true => measure::kernelops::cpus(&[]).context("which CPUs may be used")?,
            false => typed.cpus.clone(),
        };
        let rounds = if typed.quick { QUICK_ROUNDS } else { ROUNDS };
        desk.ui.note(&format!("timing every pair of {} CPUs", cpus.len()));
        let spec = Spec { cpus, rounds };
        unless_stopped(measure::cores::run(&spec, &mut desk.ui.progress(), &|| stop.is_asked()))
    })
}
