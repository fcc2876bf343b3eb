//! `hugewise size`: how many, and how far it reaches, with the arithmetic shown.

use host::Snapshot;

use super::Desk;
use crate::cli::typed::{self, Format};
use crate::results::ReachTable;
use crate::ui::Outcome;

/// Runs `hugewise size reach`.
pub(super) fn reach(desk: &mut Desk<'_>, typed: &typed::Reach) -> anyhow::Result<Outcome> {
    let form = desk.form::<ReachTable>(Format::Text)?;
    let table = ReachTable {
        rows: sim::reach::table(&typed.pages, &typed.entries, &typed.working_set),
    };
    let result = desk.about(&Snapshot::take(&desk.source), Vec::new(), table);
    desk.give(&result, form)
}
