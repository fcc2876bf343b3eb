//! `hugewise placement`: where programs ran, what differs, and what is pinned wrongly.

mod check;
mod diff;
mod record;

use super::session::Session;
use crate::cli::args::Placement;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &Placement) -> anyhow::Result<Outcome> {
    match args {
        Placement::Record(args) => record::run(session, args),
        Placement::Diff(args) => diff::run(session, args),
        Placement::Check(args) => check::run(session, args),
    }
}
