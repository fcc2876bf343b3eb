//! `hugewise undo`: reverts applied changes.

use host::processes::list;
use model::setup::{BackCame, Undone};
use settings::setup::{Which, users};

use super::desk::Desk;
use super::settings::{hinted, plan, setup};
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Undo) -> anyhow::Result<Outcome> {
    desk.must_be_live("undo")?;
    let form = desk.form::<Undone>(Format::Text)?;
    let which = typed.plan.as_deref().map(which).transpose()?;
    // A signal does not end it in the midst: it is done in a moment, and half of it is worth less than all.
    let _stop = Stop::on_signals()?;
    let mut undone = setup().undo(which.as_ref(), typed.forget).map_err(hinted)?;
    if undone.steps.iter().any(|step| step.came == BackCame::InUse) {
        // Pool pages come back when the processes end that hold them.
        let rows = list(&desk.source).into_result().unwrap_or_default();
        undone.holders = users(&rows, |kind| kind.pool().is_some());
    }
    let is_settled = undone.is_settled();
    Ok(desk.give_what_was_done(undone, form).or_bad_news(!is_settled))
}

/// A plan's file, or a goal.
fn which(typed: &str) -> anyhow::Result<Which> {
    match typed.ends_with(".json") {
        true => Ok(Which::Plan(Box::new(plan(typed.as_ref())?))),
        false => Ok(Which::Goal(typed.to_owned())),
    }
}
