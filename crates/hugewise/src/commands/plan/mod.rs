//! `hugewise plan`: which changes bring a machine to its goals. Reads, and changes nothing.

mod needs;

use std::cell::OnceCell;

use anyhow::Context;
use host::{Input, Source};
use model::Warning;
use model::plan::{Plan, PoolNeed};
use plan::goal::{Goal, Want};
use plan::{Host, Recorded, Wanted, plan};

use super::running::{self, Own};
use super::session::Session;
use super::settings::setup;
use crate::cli::args;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Plan) -> anyhow::Result<Outcome> {
    let form = session.form::<Plan>()?;
    let goals = goals(&session.source, &args.goals)?;
    let mut warnings = Vec::new();
    let host = Host::look(&session.source).with_recorded(recorded(&session.source, &mut warnings));
    let plan = planned(&host, &session.source, goals, &mut warnings)?.with_edits();
    session.give_about(&host.snapshot, warnings, plan, form)
}

fn planned(
    host: &Host<'_>,
    source: &Source,
    goals: Vec<(Goal, Option<u32>)>,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Plan> {
    let mut wanted = Vec::new();
    for (goal, pid) in goals {
        let own = Own::of(source, &goal.want, pid);
        let needs =
            needs::needs(&goal, &own, host, source, warnings).with_context(|| format!("goal `{}`", goal.text))?;
        let is_mariadb = matches!(&goal.want, Want::Database(server) if running::is_mariadb(source, server));
        let program = own.facts(is_mariadb);
        wanted.push(Wanted { goal, needs, program });
    }
    Ok(plan(host, &wanted)?)
}

/// Tries plans on one machine, which is looked at once.
pub(super) struct Planner<'s> {
    source: &'s Source,
    host: OnceCell<Host<'s>>,
}

impl<'s> Planner<'s> {
    /// Nothing is looked at before the first plan.
    pub(super) fn new(source: &'s Source) -> Self {
        let host = OnceCell::new();
        Self { source, host }
    }

    /// Would the command make a plan of that goal?
    pub(super) fn accepts(&self, goal: &str) -> bool {
        let look = || Host::look(self.source).with_recorded(recorded(self.source, &mut Vec::new()));
        let host = self.host.get_or_init(look);
        let goals = goals(self.source, &[goal.to_owned()]);
        goals
            .and_then(|goals| planned(host, self.source, goals, &mut Vec::new()))
            .is_ok()
    }
}

/// Pool pages of the plans that were applied here and not undone.
fn recorded(source: &Source, warnings: &mut Vec<Warning>) -> Vec<Recorded> {
    // A capture holds no record.
    if !source.is_live() {
        return Vec::new();
    }
    let needs = match setup().needs() {
        Ok(needs) => needs,
        Err(why) => {
            let text = format!("pages of plans on record are not counted: {why}");
            warnings.push(Warning::new("plans-unread", text));
            return Vec::new();
        }
    };
    let recorded = |need: PoolNeed| {
        let goal = need.goal.parse::<Goal>();
        let own = goal.map_or(0, |goal| Own::of(source, &goal.want, None).pages(need.page));
        Recorded { need, own }
    };
    needs.into_iter().map(recorded).collect()
}

/// Goals as typed, and those of files; of one that a process stands for also that.
fn goals(source: &Source, args: &[String]) -> anyhow::Result<Vec<(Goal, Option<u32>)>> {
    let mut goals = Vec::new();
    for text in args {
        if text.ends_with(".toml") && !text.contains(':') {
            let file = Input::Goals.text(text.as_ref());
            let file = file.with_context(|| format!("--for {text}"))?;
            goals.extend(Goal::from_toml(text, &file)?.into_iter().map(|goal| (goal, None)));
        } else {
            let goal = running::resolved(source, text).with_context(|| format!("--for {text}"))?;
            let goal = goal.parse::<Goal>().context("--for")?;
            goals.push((goal, running::named_process(text)));
        }
    }
    Ok(goals)
}
