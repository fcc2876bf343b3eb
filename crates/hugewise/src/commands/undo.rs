//! `hugewise undo`: reverts applied changes.

use host::processes::{ListOptions, list};
use host::{Snapshot, Source};
use model::Backing;
use model::process::ProcessPages;
use model::setup::{BackCame, Undone, User};

use super::Desk;
use super::settings::{hinted, setup};
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Undo) -> anyhow::Result<Outcome> {
    desk.must_be_live("undo")?;
    let form = desk.form::<Undone>(Format::Text)?;
    let mut undone = setup().undo(typed.forget).map_err(hinted)?;
    if undone.steps.iter().any(|step| step.came == BackCame::InUse) {
        undone.holders = holders(&desk.source);
    }
    let result = desk.about(&Snapshot::take(&desk.source), Vec::new(), undone);
    desk.give(&result, form)?;
    Ok(if result.data.is_settled() {
        Outcome::Done
    } else {
        Outcome::BadNews
    })
}

/// Processes with pool pages: these pages come back when they end.
fn holders(source: &Source) -> Vec<User> {
    let listed = list(source, &ListOptions::default());
    let rows = listed.known().into_iter().flat_map(|processes| &processes.rows);
    let of_pools = |row: &ProcessPages| {
        let backing = row.backing.known().into_iter().flat_map(Backing::iter);
        let pages = backing.filter(|(kind, bytes)| kind.pool().is_some() && bytes.0 > 0);
        let user = |(kind, bytes)| User {
            pid: row.pid,
            name: row.name.clone(),
            kind,
            bytes,
        };
        pages.map(user).collect::<Vec<_>>()
    };
    rows.flat_map(of_pools).collect()
}
