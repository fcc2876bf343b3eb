//! `hugewise apply`: makes the changes of a plan, so that `undo` can walk back.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::plan::Plan;
use model::setup::{Applied, End};
use settings::setup::{How, Setup, SetupError};

use super::stop::Stop;
use super::{Desk, pools, running};
use crate::cli::typed::{self, Format};
use crate::render::plan::question;
use crate::render::words::counted;
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Apply) -> anyhow::Result<Outcome> {
    desk.must_be_live("apply")?;
    let form = desk.form::<Applied>(Format::Text)?;
    let plan = read(&typed.plan)?;
    if !desk.global.yes && !is_agreed(desk, &plan)? {
        bail!("nothing was changed");
    }
    let stop = Stop::on_signals()?;
    let how = How {
        exact: typed.exact,
        leave: typed.leave,
        stop: &|| stop.is_asked(),
    };
    let mut applied = match setup().apply(&plan, &how) {
        Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
        applied => applied.map_err(hinted)?,
    };
    applied.programs = running::programs(&desk.source, &applied.goals);
    let result = desk.about(&Snapshot::take(&desk.source), Vec::new(), applied);
    desk.give(&result, form)?;
    Ok(match result.data.end {
        End::Applied => Outcome::Done,
        End::Short | End::RolledBack => Outcome::BadNews,
    })
}

/// A plan from a file.
pub(super) fn read(path: &Path) -> anyhow::Result<Plan> {
    let name = path.display();
    let text = Input::Plan.text(path).with_context(|| name.to_string())?;
    Ok(Plan::from_json(&text).with_context(|| name.to_string())?.data)
}

/// Asks the user, if there is one to ask.
fn is_agreed(desk: &Desk<'_>, plan: &Plan) -> anyhow::Result<bool> {
    let list: Vec<String> = plan.applicable().flat_map(question).collect();
    let question = format!("make {}?", counted(plan.applicable().count(), "change"));
    match desk.ui.ask(&list, &question)? {
        Some(answer) => Ok(answer),
        None => bail!("apply changes the machine and asks first, which needs a terminal: write --yes"),
    }
}

/// The machine's set-up. What was changed is recorded where it outlives a restart, if that can be written to.
pub(super) fn setup() -> Setup {
    let homes = match std::env::var_os("HUGEWISE_STATE_DIR") {
        Some(named) => vec![PathBuf::from(named).join("plans")],
        None => vec![PathBuf::from("/var/lib/hugewise"), PathBuf::from("/run/hugewise/plans")],
    };
    Setup::new(pools::writer(), homes)
}

/// What an ordinary user can do about a refusal.
pub(super) fn hinted(error: SetupError) -> anyhow::Error {
    let denied = error.is_denied() && !rustix::process::geteuid().is_root();
    let error = anyhow::Error::from(error);
    if denied {
        error.context("changing the machine needs root: run it with sudo")
    } else {
        error
    }
}
