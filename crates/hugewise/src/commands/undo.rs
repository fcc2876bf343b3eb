//! `hugewise undo`: reverts applied changes.

use host::processes::list;
use model::setup::{BackCame, Undone};
use settings::setup::users;

use super::desk::Desk;
use super::settings::{hinted, setup};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Undo) -> anyhow::Result<Outcome> {
    desk.must_be_live("undo")?;
    let form = desk.form::<Undone>(Format::Text)?;
    let mut undone = setup().undo(typed.forget).map_err(hinted)?;
    if undone.steps.iter().any(|step| step.came == BackCame::InUse) {
        // Pool pages come back when the processes end that hold them.
        let rows = list(&desk.source).into_result().unwrap_or_default();
        undone.holders = users(&rows, |kind| kind.pool().is_some());
    }
    let is_settled = undone.is_settled();
    Ok(desk.give_here(undone, form)?.or_bad_news(!is_settled))
}
