//! `hugewise vm`: the virtual machines that run here, and what backs them.

use super::session::Session;
use crate::results::VmList;
use crate::ui::Outcome;

/// Runs the command. Listing is all there is so far, with or without the word.
pub(super) fn run(session: &mut Session<'_>) -> anyhow::Result<Outcome> {
    let form = session.form::<VmList>()?;
    session.give_here(VmList::of(&session.source), form)
}
