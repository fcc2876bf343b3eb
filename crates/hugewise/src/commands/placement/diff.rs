//! `hugewise placement diff`: what differs between recordings, and published ones.

use std::path::Path;

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::Envelope;
use model::placement::{Diff, Published, Recording};
use placement::Runs;

use super::super::session::Session;
use crate::cli::args;
use crate::render::prove::placement::caveats;
use crate::show::schema_name;
use crate::ui::Outcome;

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &args::PlacementDiff) -> anyhow::Result<Outcome> {
    if args.published.is_some() {
        let form = session.form::<Published>()?;
        return session.give_here(model::placement::ibm_2006()?, form);
    }
    let form = session.form::<Diff>()?;
    let files = |side: &Option<String>| {
        let files = side.iter().flat_map(|side| side.split(','));
        files.map(str::to_owned).collect()
    };
    let (before, after): (Vec<String>, Vec<String>) = (files(&args.before), files(&args.after));
    let all = before.len() + after.len();
    if !args.work.is_empty() && args.work.len() != all {
        bail!(
            "--work has {} numbers for {all} recordings: write one for each, in order",
            args.work.len()
        );
    }
    if let Some(work) = args.work.iter().find(|work| !(work.is_finite() && **work > 0.0)) {
        bail!("--work {work}: write the work that was done, above zero");
    }
    let (first, second) = args.work.split_at(before.len().min(args.work.len()));
    let diff = placement::diff(&[runs(&before, first)?, runs(&after, second)?]);
    let snapshot = Snapshot::take(&session.source);
    session.give_about(&snapshot, caveats(&diff), diff, form)
}

fn runs(files: &[String], work: &[f64]) -> anyhow::Result<Runs> {
    let read = |file: &String| Ok((file.clone(), recording(Path::new(file))?));
    Ok(Runs {
        recordings: files.iter().map(read).collect::<anyhow::Result<_>>()?,
        work: work.to_vec(),
    })
}

fn recording(path: &Path) -> anyhow::Result<Envelope<Recording>> {
    const HOW: &str = "(`hugewise placement record --output FILE.json` makes them)";
    let name = path.display();
    let text = Input::Result.read(path).with_context(|| name.to_string())?;
    let result: Envelope<Recording> =
        serde_json::from_slice(&text).with_context(|| format!("{name}: no recording {HOW}"))?;
    if result.schema != schema_name::<Recording>() {
        bail!("{name}: `{}` is no recording {HOW}", result.schema);
    }
    Ok(result)
}
