//! `hugewise report`: a result file shown again, in another form.

use std::path::Path;

use anyhow::{Context, bail};
use host::Input;
use model::Envelope;
use model::compare::Compare;
use serde::Deserialize;

use super::session::Session;
use crate::cli::args::{self, Format};
use crate::kinds::{WithResult, by_schema};
use crate::show::{Shape, form, reads, schema_name, write_chart};
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Report) -> anyhow::Result<Outcome> {
    let path = &args.result;
    let text = Input::Result.read(path);
    let text = text.with_context(|| format!("report {}", path.display()))?;
    let Named { schema } = named(path, &text)?;
    if args.recheck {
        return recheck(session, args, (path, &text), &schema);
    }
    let again = Again {
        session,
        path,
        text: &text,
        chart: args.chart.as_deref(),
    };
    match by_schema(&schema, again) {
        Some(outcome) => outcome,
        None => bail!(
            "{}: this version cannot show `{schema}` (`hugewise schema` lists what it can)",
            path.display()
        ),
    }
}

/// Shows a comparison as judged anew.
fn recheck(
    session: &mut Session<'_>,
    args: &args::Report,
    (path, text): (&Path, &[u8]),
    schema: &str,
) -> anyhow::Result<Outcome> {
    if !reads::<Compare>(schema) {
        bail!(
            "--recheck {}: `{schema}` is no result of a comparison that this version reads",
            path.display()
        );
    }
    let form = session.form::<Compare>()?;
    let mut result = parsed::<Compare>(path, text)?;
    let judged = compare::recheck(&result.data, &args.metric, args.smallest_effect);
    let (compared, warnings) = judged.map_err(|why| anyhow::anyhow!("--recheck {}: {why}", path.display()))?;
    result.schema = schema_name::<Compare>();
    result.data = compared;
    result.warnings = warnings;
    session.give(&result, form)
}

struct Again<'a, 'd> {
    session: &'a mut Session<'d>,
    path: &'a Path,
    text: &'a [u8],
    chart: Option<&'a str>,
}

impl WithResult for Again<'_, '_> {
    type Outcome = anyhow::Result<Outcome>;

    fn with<T: Shape>(self) -> Self::Outcome {
        let Self {
            session,
            path,
            text,
            chart,
        } = self;
        let Some(name) = chart else {
            return again::<T>(session, path, text);
        };
        form(session.global, Format::Svg, &[Format::Svg])?;
        let result: Envelope<T> = parsed(path, text)?;
        session.ui.result_by(&mut |out| Ok(write_chart(&result, name, out)?))?;
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

fn again<T: Shape>(session: &mut Session<'_>, path: &Path, text: &[u8]) -> anyhow::Result<Outcome> {
    let form = session.form::<T>()?;
    let mut result = parsed::<T>(path, text)?;
    result.schema = schema_name::<T>();
    session.give(&result, form)
}

pub(super) fn parsed<T: Shape>(path: &Path, text: &[u8]) -> anyhow::Result<Envelope<T>> {
    serde_json::from_slice(text).with_context(|| format!("{}: not of the shape that its schema says", path.display()))
}
