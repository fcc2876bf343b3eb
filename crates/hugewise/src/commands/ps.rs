//! `hugewise ps`: the page kinds behind all processes, or behind one.

use anyhow::Context;
use host::processes::{self, ListOptions};
use host::{Snapshot, Source};
use model::Reading;

use super::Desk;
use crate::cli::typed::{self, Format, Sort};
use crate::results::{OneProcess, ProcessList};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Ps) -> anyhow::Result<Outcome> {
    let snapshot = Snapshot::take(&desk.source);
    match typed.pid {
        Some(pid) => {
            let form = desk.form::<OneProcess>(Format::Text)?;
            let one = one(&desk.source, pid, typed.vmas)?;
            let result = desk.about(&snapshot, Vec::new(), one);
            desk.give(&result, form)
        }
        None => {
            let form = desk.form::<ProcessList>(Format::Text)?;
            let list = list(&desk.source, typed.sort, typed.top)?;
            let result = desk.about(&snapshot, Vec::new(), list);
            desk.give(&result, form)
        }
    }
}

/// All processes.
pub(super) fn list(source: &Source, sort: Sort, top: Option<usize>) -> anyhow::Result<ProcessList> {
    let listed = processes::list(source, &ListOptions::default()).into_result();
    let listed = listed.with_context(|| format!("the processes of {}", source.name()))?;
    Ok(ProcessList::new(listed, sort, top))
}

fn one(source: &Source, pid: u32, vmas: bool) -> anyhow::Result<OneProcess> {
    let process = processes::one(source, pid).into_result();
    let process = process.with_context(|| format!("process {pid} of {}", source.name()))?;
    let mappings: Option<Reading<_>> = vmas.then(|| processes::mappings(source, pid));
    Ok(OneProcess { process, mappings })
}
