//! `hugewise collapse`: huge pages for a process that runs.

use anyhow::Context;
use compare::flip::Spec;
use host::Snapshot;
use model::collapse::Collapse;
use model::{Bytes, Warning};

use super::desk::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, Format};
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Collapse) -> anyhow::Result<Outcome> {
    desk.must_be_live("collapsing memory")?;
    let form = desk.form::<Collapse>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let base_page = snapshot.base_page().into_result().context("the size of base pages")?;
    let page = snapshot.pmd_page().into_result();
    let page = page.context("this kernel has no transparent huge pages to collapse into")?;
    let spec = Spec {
        pid: typed.pid,
        span: typed.range.clone(),
        used: f64::from(typed.used) / 100.0,
        budget: typed.budget,
        base_page,
        page,
    };
    let stop = Stop::on_signals()?;
    let mut progress = desk.ui.progress();
    let collapse = compare::flip::run(&spec, &mut progress, &|| stop.is_asked());
    drop(progress);
    let collapse = collapse?;
    let stopped = collapse.stopped;
    let result = desk.about(&snapshot, warnings(&collapse), collapse);
    let given = desk.give(&result, form)?;
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
