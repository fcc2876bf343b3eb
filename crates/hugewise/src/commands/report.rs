//! `hugewise report`: a result file shown again, in another form.

use std::path::Path;

use anyhow::{Context, bail};
use host::Input;
use model::Envelope;
use model::compare::Compare;
use serde::Deserialize;

use super::session::Session;
use crate::cli::args::{self, Format};
use crate::results::kinds::{WithResult, by_schema};
use crate::show::{Shape, form, reads, schema_name, write_chart};
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Report) -> anyhow::Result<Outcome> {
    let is_text = matches!(session.global.format, None | Some(Format::Text)) && !session.global.json;
    let (files, is_file) = (args.results.len(), session.ui.has_file());
    if files > 1 && (args.chart.is_some() || !is_text || is_file) {
        let what = if is_file {
            "--output: a file holds one result"
        } else {
            "several results are shown as text alone"
        };
        bail!("report: {what} (run it for each of the {files} files)");
    }
    let mut outcome = Outcome::Done;
    for (number, path) in args.results.iter().enumerate() {
        if number > 0 {
            session.ui.result_by(&mut |out| Ok(writeln!(out)?))?;
        }
        outcome = one(session, args, path)?;
    }
    Ok(outcome)
}

fn one(session: &mut Session<'_>, args: &args::Report, path: &Path) -> anyhow::Result<Outcome> {
    let text = Input::Result.read(path);
    let text = text.with_context(|| format!("report {}", path.display()))?;
    let schema = schema_of(path, &text)?;
    if args.recheck {
        return recheck(session, args, (path, &text), &schema);
    }
    let text = &text;
    match by_schema(
        &schema,
        Again {
            session,
            args,
            path,
            text,
        },
    ) {
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
    args: &'a args::Report,
    path: &'a Path,
    text: &'a [u8],
}

impl WithResult for Again<'_, '_> {
    type Outcome = anyhow::Result<Outcome>;

    fn with<T: Shape>(self) -> Self::Outcome {
        let Self {
            session,
            args,
            path,
            text,
        } = self;
        let Some(name) = &args.chart else {
            let form = session.form::<T>()?;
            let mut result = parsed::<T>(path, text)?;
            result.schema = schema_name::<T>();
            return session.give(&result, form);
        };
        form(session.global, Format::Svg, &[Format::Svg])?;
        let result = parsed::<T>(path, text)?;
        session.ui.result_by(&mut |out| Ok(write_chart(&result, name, out)?))?;
        Ok(Outcome::Done)
    }
}

/// What a result says of itself; its data stays unread until its shape is known.
pub(super) fn schema_of(path: &Path, text: &[u8]) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Named {
        schema: String,
    }
    match serde_json::from_slice::<Named>(text) {
        Ok(named) => Ok(named.schema),
        Err(error) if error.is_data() => bail!("{}: no result of hugewise: it has no `schema`", path.display()),
        Err(error) => Err(error).with_context(|| format!("{}: this is not JSON", path.display())),
    }
}

pub(super) fn parsed<T: Shape>(path: &Path, text: &[u8]) -> anyhow::Result<Envelope<T>> {
    serde_json::from_slice(text).with_context(|| format!("{}: not of the shape that its schema says", path.display()))
}
