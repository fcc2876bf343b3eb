//! `hugewise report`: a result file shown again, in another form.

use std::path::Path;

use anyhow::{Context, bail};
use host::Input;
use model::Envelope;
use model::collapse::Collapse;
use model::compare::Compare;
use model::cores::Cores;
use model::guest::Guest;
use model::guest::tlb::GuestTlb;
use model::kernelops::KernelOps;
use model::latency::Latency;
use model::plan::Plan;
use model::setup::{Applied, Status, Undone, Verified};
use model::tlb::Tlb;
use serde::Deserialize;
use sim::size::Sizing;

use super::Desk;
use crate::cli::typed::{self, Format};
use crate::results::{Checkup, Doctor, OneProcess, ProcessList, ReachTable, VmList};
use crate::show::{Show, schema_name};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Report) -> anyhow::Result<Outcome> {
    let path = &typed.result;
    let text = Input::Result.read(path);
    let text = text.with_context(|| format!("report {}", path.display()))?;
    let Named { schema } = named(path, &text)?;
    match schema.as_str() {
        _ if schema == schema_name::<Applied>() => again::<Applied>(desk, path, &text),
        _ if schema == schema_name::<Checkup>() => again::<Checkup>(desk, path, &text),
        _ if schema == schema_name::<Doctor>() => again::<Doctor>(desk, path, &text),
        _ if schema == schema_name::<Collapse>() => again::<Collapse>(desk, path, &text),
        _ if schema == schema_name::<Compare>() => again::<Compare>(desk, path, &text),
        _ if schema == schema_name::<Cores>() => again::<Cores>(desk, path, &text),
        _ if schema == schema_name::<Guest>() => again::<Guest>(desk, path, &text),
        _ if schema == schema_name::<GuestTlb>() => again::<GuestTlb>(desk, path, &text),
        _ if schema == schema_name::<KernelOps>() => again::<KernelOps>(desk, path, &text),
        _ if schema == schema_name::<Latency>() => again::<Latency>(desk, path, &text),
        _ if schema == schema_name::<ProcessList>() => again::<ProcessList>(desk, path, &text),
        _ if schema == schema_name::<OneProcess>() => again::<OneProcess>(desk, path, &text),
        _ if schema == schema_name::<Plan>() => again::<Plan>(desk, path, &text),
        _ if schema == schema_name::<Sizing>() => again::<Sizing>(desk, path, &text),
        _ if schema == schema_name::<ReachTable>() => again::<ReachTable>(desk, path, &text),
        _ if schema == schema_name::<Status>() => again::<Status>(desk, path, &text),
        _ if schema == schema_name::<Undone>() => again::<Undone>(desk, path, &text),
        _ if schema == schema_name::<Verified>() => again::<Verified>(desk, path, &text),
        _ if schema == schema_name::<Tlb>() => again::<Tlb>(desk, path, &text),
        _ if schema == schema_name::<VmList>() => again::<VmList>(desk, path, &text),
        other => bail!(
            "{}: this version cannot show `{other}` (`hugewise schema` lists what it can)",
            path.display()
        ),
    }
}

/// What a result says of itself; its data stays unread until its shape is known.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

fn named(path: &Path, text: &[u8]) -> anyhow::Result<Named> {
    match serde_json::from_slice(text) {
        Ok(named) => Ok(named),
        Err(error) if error.is_data() => bail!("{}: no result of hugewise: it has no `schema`", path.display()),
        Err(error) => Err(error).with_context(|| format!("{}: this is not JSON", path.display())),
    }
}

fn again<T: Show>(desk: &mut Desk<'_>, path: &Path, text: &[u8]) -> anyhow::Result<Outcome> {
    let form = desk.form::<T>(Format::Html)?;
    let result: Envelope<T> = serde_json::from_slice(text)
        .with_context(|| format!("{}: not of the shape that its schema says", path.display()))?;
    desk.give(&result, form)
}
