//! `hugewise vm`: the virtual machines that run here, and what backs them.

use host::Snapshot;

use super::desk::Desk;
use crate::cli::typed::Format;
use crate::results::VmList;
use crate::ui::Outcome;

/// Runs the command. Listing is all there is so far, with or without the word.
pub(super) fn run(desk: &mut Desk<'_>) -> anyhow::Result<Outcome> {
    let form = desk.form::<VmList>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let result = desk.about(&snapshot, Vec::new(), VmList::of(&desk.source));
    desk.give(&result, form)
}
