//! `hugewise collapse`: huge pages for a process that runs.

use anyhow::Context;
use compare::flip::Spec;
use host::Snapshot;
use model::collapse::Collapse;
use model::{Bytes, Warning};

use super::session::Session;
use crate::cli::args;
use crate::stop;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Collapse) -> anyhow::Result<Outcome> {
    session.must_be_live("collapsing memory")?;
    let form = session.form::<Collapse>()?;
    let snapshot = Snapshot::take(&session.source);
    let page = snapshot.pmd_page().into_result();
    page.context("this kernel has no transparent huge pages to collapse into")?;
    let spec = Spec {
        pid: args.pid,
        span: args.range.clone(),
        used: f64::from(args.used) / 100.0,
        budget: args.budget,
    };
    stop::on_signals()?;
    let mut progress = session.ui.progress();
    let collapse = compare::flip::run(&spec, &mut progress, &stop::is_asked);
    drop(progress);
    let collapse = collapse?;
    let stopped = collapse.stopped;
    let result = session.about(&snapshot, warnings(&collapse), collapse);
    let given = session.give_what_was_done(&result, form);
    Ok(if stopped { Outcome::Interrupted } else { given })
}

/// What the user should not overlook.
fn warnings(collapse: &Collapse) -> Vec<Warning> {
    let none = collapse.pieces.large == 0;
    let text = "no PMD range is backed by a huge page; the reasons are below";
    let none = none.then(|| Warning::new("nothing-collapsed", text));
    let grown = collapse.grown();
    let grown = (grown > Bytes(collapse.before.total().0 / 50)).then(|| {
        Warning::new(
            "memory-grew",
            format!("the process holds {grown} more than before: PMD ranges that were partly in use are allocated whole now (--used 100 avoids it)"),
        )
    });
    [none, grown].into_iter().flatten().collect()
}
