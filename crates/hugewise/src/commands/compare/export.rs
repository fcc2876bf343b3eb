//! The file of `--export-json`, which other tools read.

use std::path::Path;

use anyhow::Context;
use model::compare::Compare;

use super::between::Typed;
use crate::files::{Access, Existing, Target};
use crate::render::export::hyperfine;

/// Before any run: a place that cannot be written is none.
pub(super) fn open(file: &Path) -> anyhow::Result<Target> {
    Target::open(file, Access::Usual).with_context(|| option(file))
}

/// Each command with its parameters.
pub(super) fn write(file: &Path, mut target: Target, compared: &Compare, typed: &[Typed]) -> anyhow::Result<()> {
    let command = |typed: &Typed| (typed.command.clone(), typed.values.clone());
    let text = hyperfine::json(compared, &typed.iter().map(command).collect::<Vec<_>>());
    let put = target.put(text.as_bytes(), Existing::Replace);
    put.map(drop).with_context(|| option(file))
}

fn option(file: &Path) -> String {
    format!("--export-json {}", file.display())
}
