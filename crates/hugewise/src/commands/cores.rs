//! `hugewise measure cores`: how far CPUs are from each other, and which of them share a core.

use anyhow::Context;
use measure::cores::Spec;

use super::measuring;
use super::session::Session;
use crate::cli::args;
use crate::stop;
use crate::ui::Outcome;

/// Rounds per pair: medians within a few per cent, a fifth of a second per pair.
const ROUNDS: u32 = 31;
const QUICK_ROUNDS: u32 = 9;

pub(super) fn run(session: &mut Session<'_>, args: &args::Cores) -> anyhow::Result<Outcome> {
    measuring::run(session.ui.look(), session, |session, _| {
        let cpus = match args.cpus.is_empty() {
            true => measure::kernelops::cpus(&[]).context("which CPUs may be used")?,
            false => args.cpus.clone(),
        };
        let rounds = if args.quick { QUICK_ROUNDS } else { ROUNDS };
        session.ui.note(&format!("timing every pair of {} CPUs", cpus.len()));
        let spec = Spec { cpus, rounds };
        let measured = measure::cores::run(&spec, &mut session.ui.progress(), &stop::is_asked);
        Ok(measured?)
    })
}
