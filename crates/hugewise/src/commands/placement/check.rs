//! `hugewise placement check`: what is pinned wrongly now.

use anyhow::{Context, bail};
use host::Snapshot;
use host::processes::Stat;
use host::threads::Look;
use model::placement::Check;

use super::super::session::Session;
use crate::cli::args;
use crate::ui::Outcome;

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &args::PlacementCheck) -> anyhow::Result<Outcome> {
    let form = session.form::<Check>()?;
    let only = match args.target.as_str() {
        "all" => None,
        pid => Some(
            pid.parse()
                .with_context(|| format!("`{pid}` is no PID (write a PID, or all)"))?,
        ),
    };
    if let Some(pid) = only
        && Stat::of(&session.source, pid).known().is_none()
    {
        bail!("process {pid}: there is no such process");
    }
    let snapshot = Snapshot::take(&session.source);
    let check = placement::check(&session.source, &snapshot, only);
    if check.threads == 0 && Look::read(&session.source).is_none() {
        bail!("no threads could be read (captures of older versions, and those made with --no-processes, have none)");
    }
    let is_wrong = !check.mistakes.is_empty();
    Ok(session
        .give_about(&snapshot, Vec::new(), check, form)?
        .or_bad_news(is_wrong))
}
