//! `hugewise verify`: are the applied changes in effect, and does a process use the pages?

use host::Snapshot;
use host::processes::list;
use model::setup::Verified;

use super::settings::{hinted, plan, setup};
use super::{Desk, running};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Verify) -> anyhow::Result<Outcome> {
    desk.must_be_live("verify")?;
    let form = desk.form::<Verified>(Format::Text)?;
    let wanted = typed.plan.as_deref().map(plan).transpose()?;
    let processes = list(&desk.source);
    let programs = |goals: &[String]| running::programs(&desk.source, goals);
    let verified = setup().verify(wanted.as_ref(), &processes, &programs).map_err(hinted)?;
    let result = desk.about(&Snapshot::take(&desk.source), Vec::new(), verified);
    desk.give(&result, form)?;
    Ok(if result.data.is_obtained() {
        Outcome::Done
    } else {
        Outcome::BadNews
    })
}
