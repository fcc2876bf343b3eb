//! `hugewise undo`: reverts applied changes.

use host::Snapshot;
use model::setup::Undone;

use super::Desk;
use super::apply::{hinted, setup};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Undo) -> anyhow::Result<Outcome> {
    desk.must_be_live("undo")?;
    let form = desk.form::<Undone>(Format::Text)?;
    let undone = setup().undo(typed.forget).map_err(hinted)?;
    let result = desk.about(&Snapshot::take(&desk.source), Vec::new(), undone);
    desk.give(&result, form)?;
    Ok(if result.data.is_settled() {
        Outcome::Done
    } else {
        Outcome::BadNews
    })
}
