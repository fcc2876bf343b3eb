//! `hugewise status`: what hugewise has changed and when.

use model::setup::Status;

use super::session::Session;
use super::settings::{hinted, setup};
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>) -> anyhow::Result<Outcome> {
    session.must_be_live("status")?;
    let form = session.form::<Status>()?;
    let status = setup().status().map_err(hinted)?;
    session.give_here(status, form)
}
