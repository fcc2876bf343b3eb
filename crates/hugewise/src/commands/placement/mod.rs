//! `hugewise placement`: where programs ran, what differs, and what is pinned wrongly.

mod check;
mod diff;
mod record;

use super::desk::Desk;
use crate::cli::typed::Placement;
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &Placement) -> anyhow::Result<Outcome> {
    match typed {
        Placement::Record(typed) => record::run(desk, typed),
        Placement::Diff(typed) => diff::run(desk, typed),
        Placement::Check(typed) => check::run(desk, typed),
    }
}
