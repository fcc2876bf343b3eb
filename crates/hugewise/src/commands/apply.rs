//! `hugewise apply`: makes the changes of a plan, so that `undo` can walk back.

use ::settings::setup::How;
use anyhow::bail;
use model::plan::Plan;
use model::setup::{Applied, End};

use super::running;
use super::session::Session;
use super::settings::{self, hinted, setup};
use crate::cli::args;
use crate::render::fix::plan::question;
use crate::stop;
use crate::ui::Outcome;
use draw::counted;

pub(super) fn run(session: &mut Session<'_>, args: &args::Apply) -> anyhow::Result<Outcome> {
    session.must_be_live("apply")?;
    let form = session.form::<Applied>()?;
    let plan = settings::plan(&args.plan)?;
    if !session.global.yes && !is_agreed(session, &plan)? {
        bail!("nothing was changed");
    }
    stop::on_signals()?;
    let how = How {
        exact: args.exact,
        leave: args.leave,
        stop: &stop::is_asked,
    };
    let mut applied = match setup().apply(&plan, &how) {
        Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
        Err(error) if error.is_in_part() => {
            session.ui.say(&format!("{:#}", hinted(error)));
            return Ok(Outcome::BadNews);
        }
        applied => applied.map_err(hinted)?,
    };
    applied.programs = running::programs(&session.source, &applied.goals).unwrap_or_default();
    let is_bad = applied.end != End::Applied;
    let result = session.here(applied);
    Ok(session.give_what_was_done(&result, form).or_bad_news(is_bad))
}

/// Asks the user, if there is one to ask.
fn is_agreed(session: &Session<'_>, plan: &Plan) -> anyhow::Result<bool> {
    let list: Vec<String> = plan.applicable().flat_map(question).collect();
    let question = format!("make {}?", counted(plan.applicable().count(), "change"));
    match session.ui.ask(&list, &question)? {
        Some(answer) => Ok(answer),
        None => bail!("apply changes the machine and asks first, which needs a terminal: write --yes"),
    }
}
