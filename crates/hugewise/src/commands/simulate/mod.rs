//! `hugewise simulate`: other machines and other settings, on paper.

mod captured;
mod host_memory;
pub(super) mod machine;
mod scheduler;
pub(super) mod trace;
mod translation;

use super::session::Session;
use crate::cli::args::Simulate;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Simulate) -> anyhow::Result<Outcome> {
    match args {
        Simulate::Translation(args) => translation::run(session, args),
        Simulate::Scheduler(args) => scheduler::run(session, args),
        Simulate::Host(args) => host_memory::run(session, args),
    }
}
