//! `hugewise schema` and `hugewise completions`: what programs and shells want to know.

use anyhow::bail;
use clap::CommandFactory;

use super::session::Session;
use crate::cli::{Cli, args};
use crate::results::kinds::all;
use crate::ui::Outcome;

/// Runs `hugewise schema`.
pub(super) fn run(session: &mut Session<'_>, args: &args::Schema) -> anyhow::Result<Outcome> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let text = match &args.name {
        None => names.join("\n"),
        Some(name) => match all.iter().find(|(known, _)| known == name) {
            Some((_, schema)) => serde_json::to_string_pretty(schema)?,
            None => bail!("`{name}` is not a result (write {})", names.join(", ")),
        },
    };
    session.ui.result(format!("{text}\n").as_bytes())?;
    Ok(Outcome::Done)
}

/// Runs `hugewise completions`.
pub(super) fn completions(session: &mut Session<'_>, args: &args::Completions) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hugewise", &mut script);
    session.ui.result(&script)?;
    Ok(Outcome::Done)
}
