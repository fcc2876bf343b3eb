//! `hugewise status`: what hugewise has changed and when.

use model::setup::Status;

use super::desk::Desk;
use super::settings::{hinted, setup};
use crate::cli::typed::Format;
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>) -> anyhow::Result<Outcome> {
    desk.must_be_live("status")?;
    let form = desk.form::<Status>(Format::Text)?;
    let status = setup().status().map_err(hinted)?;
    desk.give_here(status, form)
}
