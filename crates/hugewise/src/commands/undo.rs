//! `hugewise undo`: reverts applied changes.

use host::processes::list;
use model::setup::{RevertOutcome, Undone};
use plan::goal::Goal;
use settings::setup::{Which, users};

use super::session::Session;
use super::settings::{hinted, plan, setup};
use crate::cli::args;
use crate::stop;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Undo) -> anyhow::Result<Outcome> {
    session.must_be_live("undo")?;
    let form = session.form::<Undone>()?;
    let which = args.plan.as_deref().map(which).transpose()?;
    // A signal does not end it in the midst: it is done in a moment, and half of it is worth less than all.
    stop::on_signals()?;
    let mut undone = setup().undo(which.as_ref(), args.forget).map_err(hinted)?;
    if undone.steps.iter().any(|step| step.outcome == RevertOutcome::InUse) {
        // Pool pages come back when the processes end that hold them.
        let rows = list(&session.source).into_result().unwrap_or_default();
        undone.holders = users(&rows, |kind| kind.pool().is_some());
    }
    let is_settled = undone.is_settled();
    let result = session.here(undone);
    Ok(session.give_what_was_done(&result, form).or_bad_news(!is_settled))
}

/// A plan's file, or a goal, which plans have in one spelling.
fn which(args: &str) -> anyhow::Result<Which> {
    match args.ends_with(".json") {
        true => Ok(Which::Plan(Box::new(plan(args.as_ref())?))),
        false => Ok(Which::Goal(
            args.parse::<Goal>().map_or_else(|_| args.to_owned(), |goal| goal.text),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_spelled_as_in_its_plan() {
        let goal = |typed| which(typed).map(|which| which.to_string()).ok();
        assert_eq!(goal("thp=always"), goal("thp:always"));
        assert_eq!(
            goal("postgres:file=/a/postgresql.conf"),
            goal("postgres:/a/postgresql.conf")
        );
        assert_eq!(goal("no goal at all").as_deref(), Some("no goal at all"));
    }
}
