//! `hugewise verify`: are the applied changes in effect, and does a process use the pages?

use host::processes::list;
use model::setup::Verified;

use super::running;
use super::session::Session;
use super::settings::{hinted, plan, setup};
use crate::cli::args;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Verify) -> anyhow::Result<Outcome> {
    session.must_be_live("verify")?;
    let form = session.form::<Verified>()?;
    let wanted = args.plan.as_deref().map(plan).transpose()?;
    let processes = list(&session.source);
    let programs = |goals: &[String]| running::programs(&session.source, goals);
    let verified = setup().verify(wanted.as_ref(), &processes, &programs).map_err(hinted)?;
    let is_good = verified.is_obtained() && (!args.in_use || verified.is_in_use());
    Ok(session.give_here(verified, form)?.or_bad_news(!is_good))
}
