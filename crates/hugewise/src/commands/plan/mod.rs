//! `hugewise plan`: which changes bring a machine to its goals. Reads, and changes nothing.

mod needs;

use anyhow::Context;
use host::{Input, Source};
use model::plan::Plan;
use plan::goal::Goal;
use plan::{Host, Wanted, plan};

use super::desk::Desk;
use super::running;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Plan) -> anyhow::Result<Outcome> {
    let form = desk.form::<Plan>(Format::Text)?;
    let goals = goals(&desk.source, &typed.goals)?;
    let host = Host::look(&desk.source);
    let mut warnings = Vec::new();
    let mut wanted = Vec::new();
    for goal in goals {
        let needs =
            needs::needs(&goal, &host, &desk.source, &mut warnings).with_context(|| format!("goal `{}`", goal.text))?;
        wanted.push(Wanted { goal, needs });
    }
    let plan = plan(&host, &wanted)?;
    let result = desk.about(&host.snapshot, warnings, plan);
    desk.give(&result, form)
}

/// Goals as typed, and those of files.
fn goals(source: &Source, typed: &[String]) -> anyhow::Result<Vec<Goal>> {
    let mut goals = Vec::new();
    for text in typed {
        if text.ends_with(".toml") && !text.contains(':') {
            let file = Input::Goals.text(text.as_ref());
            let file = file.with_context(|| format!("--for {text}"))?;
            goals.extend(Goal::from_toml(text, &file)?);
        } else {
            let text = running::resolved(source, text).with_context(|| format!("--for {text}"))?;
            goals.push(text.parse::<Goal>().context("--for")?);
        }
    }
    Ok(goals)
}
