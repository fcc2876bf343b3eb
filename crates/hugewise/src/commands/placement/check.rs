//! `hugewise placement check`: what is pinned wrongly now.

use anyhow::{Context, bail};
use host::Snapshot;
use host::processes::Stat;
use host::threads::Look;
use model::placement::Check;

use super::super::desk::Desk;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::PlacementCheck) -> anyhow::Result<Outcome> {
    let form = desk.form::<Check>(Format::Text)?;
    let only = match typed.target.as_str() {
        "all" => None,
        pid => Some(
            pid.parse()
                .with_context(|| format!("`{pid}` is no PID (write a PID, or all)"))?,
        ),
    };
    if let Some(pid) = only
        && Stat::of(&desk.source, pid).known().is_none()
    {
        bail!("process {pid}: there is no such process");
    }
    let snapshot = Snapshot::take(&desk.source);
    let check = placement::check(&desk.source, &snapshot, only);
    if check.threads == 0 && Look::read(&desk.source).is_none() {
        bail!("no threads could be read (captures of older versions, and those made with --no-processes, have none)");
    }
    let is_wrong = !check.mistakes.is_empty();
    let result = desk.about(&snapshot, Vec::new(), check);
    let given = desk.give(&result, form)?;
    Ok(given.or_bad_news(is_wrong))
}
