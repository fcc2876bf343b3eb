//! `hugewise report`: a result file shown again, in another form.

use std::path::Path;

use anyhow::{Context, bail};
use host::Input;
use model::Envelope;
use model::collapse::Collapse;
use model::compare::Compare;
use model::cores::Cores;
use model::guest::Guest;
use model::kernelops::KernelOps;
use model::latency::Latency;
use model::migration::Migration;
use model::placement::{self, Check, Published, Recording};
use model::plan::Plan;
use model::setup::{Applied, Status, Undone, Verified};
use model::suite::{Suite, SuiteList};
use model::tlb::Tlb;
use serde::Deserialize;
use sim::scheduler::Schedule;
use sim::size::Sizing;
use sim::translation::study::Simulation;
use sim::translation::study::predict::Prediction;
use sim::translation::sweep::SweepResult;

use super::Desk;
use crate::cli::typed::{self, Format};
use crate::results::{Checkup, Diff, Doctor, Explain, OneProcess, ProcessList, ReachTable, VmList};
use crate::show::{Show, schema_name, write_chart};
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Report) -> anyhow::Result<Outcome> {
    let path = &typed.result;
    let text = Input::Result.read(path);
    let text = text.with_context(|| format!("report {}", path.display()))?;
    let Named { schema } = named(path, &text)?;
    let again = Again {
        desk,
        path,
        text: &text,
        chart: typed.chart.as_deref(),
    };
    match by_schema(&schema, again) {
        Some(outcome) => outcome,
        None => bail!(
            "{}: this version cannot show `{schema}` (`hugewise schema` lists what it can)",
            path.display()
        ),
    }
}

/// What is done with a result of whichever kind.
pub(super) trait WithResult {
    /// What comes of it.
    type Outcome;
    /// Does it with a result of this kind.
    fn with<T: Show>(self) -> Self::Outcome;
}

/// Does it with the kind of result that a schema names, if it is known.
pub(super) fn by_schema<W: WithResult>(schema: &str, with: W) -> Option<W::Outcome> {
    Some(match schema {
        _ if schema == schema_name::<Applied>() => with.with::<Applied>(),
        _ if schema == schema_name::<Checkup>() => with.with::<Checkup>(),
        _ if schema == schema_name::<Diff>() => with.with::<Diff>(),
        _ if schema == schema_name::<Doctor>() => with.with::<Doctor>(),
        _ if schema == schema_name::<Explain>() => with.with::<Explain>(),
        _ if schema == schema_name::<Collapse>() => with.with::<Collapse>(),
        _ if schema == schema_name::<Compare>() => with.with::<Compare>(),
        _ if schema == schema_name::<Cores>() => with.with::<Cores>(),
        _ if schema == schema_name::<Guest>() => with.with::<Guest>(),
        _ if schema == schema_name::<KernelOps>() => with.with::<KernelOps>(),
        _ if schema == schema_name::<Latency>() => with.with::<Latency>(),
        _ if schema == schema_name::<Migration>() => with.with::<Migration>(),
        _ if schema == schema_name::<ProcessList>() => with.with::<ProcessList>(),
        _ if schema == schema_name::<OneProcess>() => with.with::<OneProcess>(),
        _ if schema == schema_name::<Recording>() => with.with::<Recording>(),
        _ if schema == schema_name::<Check>() => with.with::<Check>(),
        _ if schema == schema_name::<placement::Diff>() => with.with::<placement::Diff>(),
        _ if schema == schema_name::<Published>() => with.with::<Published>(),
        _ if schema == schema_name::<Plan>() => with.with::<Plan>(),
        _ if schema == schema_name::<Prediction>() => with.with::<Prediction>(),
        _ if schema == schema_name::<Schedule>() => with.with::<Schedule>(),
        _ if schema == schema_name::<Simulation>() => with.with::<Simulation>(),
        _ if schema == schema_name::<Suite>() => with.with::<Suite>(),
        _ if schema == schema_name::<SuiteList>() => with.with::<SuiteList>(),
        _ if schema == schema_name::<SweepResult>() => with.with::<SweepResult>(),
        _ if schema == schema_name::<Sizing>() => with.with::<Sizing>(),
        _ if schema == schema_name::<ReachTable>() => with.with::<ReachTable>(),
        _ if schema == schema_name::<Status>() => with.with::<Status>(),
        _ if schema == schema_name::<Undone>() => with.with::<Undone>(),
        _ if schema == schema_name::<Verified>() => with.with::<Verified>(),
        _ if schema == schema_name::<Tlb>() => with.with::<Tlb>(),
        _ if schema == schema_name::<VmList>() => with.with::<VmList>(),
        _ => return None,
    })
}

/// Shows it again.
struct Again<'a, 'd> {
    desk: &'a mut Desk<'d>,
    path: &'a Path,
    text: &'a [u8],
    chart: Option<&'a str>,
}

impl WithResult for Again<'_, '_> {
    type Outcome = anyhow::Result<Outcome>;

    fn with<T: Show>(self) -> Self::Outcome {
        let Self {
            desk,
            path,
            text,
            chart,
        } = self;
        let Some(name) = chart else {
            return again::<T>(desk, path, text);
        };
        let form = desk.global.form(Format::Svg, &[Format::Svg, Format::Png])?;
        let result: Envelope<T> = parsed(path, text)?;
        desk.ui.result_by(|out| Ok(write_chart(&result, name, form, out)?))?;
        Ok(Outcome::Done)
    }
}

/// What a result says of itself; its data stays unread until its shape is known.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) schema: String,
}

pub(super) fn named(path: &Path, text: &[u8]) -> anyhow::Result<Named> {
    match serde_json::from_slice(text) {
        Ok(named) => Ok(named),
        Err(error) if error.is_data() => bail!("{}: no result of hugewise: it has no `schema`", path.display()),
        Err(error) => Err(error).with_context(|| format!("{}: this is not JSON", path.display())),
    }
}

fn again<T: Show>(desk: &mut Desk<'_>, path: &Path, text: &[u8]) -> anyhow::Result<Outcome> {
    let usual = if desk.ui.shows_on_terminal() {
        Format::Text
    } else {
        Format::Html
    };
    let form = desk.form::<T>(usual)?;
    desk.give(&parsed::<T>(path, text)?, form)
}

fn parsed<T: Show>(path: &Path, text: &[u8]) -> anyhow::Result<Envelope<T>> {
    serde_json::from_slice(text).with_context(|| format!("{}: not of the shape that its schema says", path.display()))
}
