//! `hugewise simulate`: other machines and other settings, on paper.

mod captured;
pub(super) mod here;
mod host_memory;
pub(super) mod machine;
pub(super) mod no_tlb;
mod scheduler;
mod settings;
mod table;
pub(super) mod trace;
mod translation;

use super::desk::Desk;
use crate::cli::typed::Simulate;
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &Simulate) -> anyhow::Result<Outcome> {
    match typed {
        Simulate::Translation(typed) => translation::run(desk, typed),
        Simulate::Scheduler(typed) => scheduler::run(desk, typed),
        Simulate::Host(typed) => host_memory::run(desk, typed),
    }
}
