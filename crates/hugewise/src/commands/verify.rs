//! `hugewise verify`: are the applied changes in effect, and does a process use the pages?

use host::processes::list;
use model::setup::Verified;

use super::desk::Desk;
use super::running;
use super::settings::{hinted, plan, setup};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Verify) -> anyhow::Result<Outcome> {
    desk.must_be_live("verify")?;
    let form = desk.form::<Verified>(Format::Text)?;
    let wanted = typed.plan.as_deref().map(plan).transpose()?;
    let processes = list(&desk.source);
    let programs = |goals: &[String]| running::programs(&desk.source, goals);
    let verified = setup().verify(wanted.as_ref(), &processes, &programs).map_err(hinted)?;
    let is_good = verified.is_obtained() && (!typed.in_use || verified.is_in_use());
    Ok(desk.give_here(verified, form)?.or_bad_news(!is_good))
}
