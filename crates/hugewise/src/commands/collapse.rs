//! `hugewise collapse`: huge pages for a process that runs.

use anyhow::{Context, bail};
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
    let (stopped, nothing) = (collapse.stopped, nothing_done(&collapse));
    let result = session.about(&snapshot, warnings(&collapse), collapse);
    let given = session.give_what_was_done(&result, form);
    match nothing {
        _ if stopped => Ok(Outcome::Interrupted),
        Some(why) => bail!(why),
        None => Ok(given),
    }
}

/// That nothing was collapsed, and why.
fn nothing_done(collapse: &Collapse) -> Option<String> {
    let pieces = collapse.pieces;
    (pieces.large == 0).then(|| {
        let refused = collapse.refused.first();
        let why = refused.map(|refused| format!(" ({}: {})", refused.error, refused.meaning)).unwrap_or_default();
        format!(
            "process {}: no huge page came of its {} ranges of {}: the kernel refused {}{why}, and {} are too little in use",
            collapse.pid,
            pieces.total(),
            collapse.page.exact(),
            pieces.refused,
            pieces.sparse
        )
    })
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

#[cfg(test)]
mod tests {
    use model::Backing;
    use model::Bytes;
    use model::collapse::{Collapse, Pieces, Refused};

    use super::nothing_done;

    #[test]
    fn memory_of_which_every_range_is_refused_was_not_collapsed() {
        let of = |large: u64| Collapse {
            pid: 90,
            name: "app".to_owned(),
            range: "anon".to_owned(),
            page: Bytes::mib(2),
            before: Backing::default(),
            after: Backing::default(),
            pieces: Pieces {
                large,
                refused: 64,
                ..Pieces::default()
            },
            refused: vec![Refused {
                error: "EINVAL".to_owned(),
                meaning: "this memory forbids it".to_owned(),
                pieces: 64,
            }],
            ms: None,
            seconds: 0.1,
            stopped: false,
        };
        let why = nothing_done(&of(0)).expect("nothing");
        assert!(
            why.starts_with("process 90: ") && why.contains("refused 64 (EINVAL: this memory forbids it)"),
            "{why}"
        );
        assert_eq!(nothing_done(&of(1)), None);
    }
}
