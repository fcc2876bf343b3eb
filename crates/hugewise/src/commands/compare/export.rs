//! The file of `--export-json`, which other tools read.

use std::path::Path;

use anyhow::Context;
use model::compare::Compare;

use super::between::Typed;
use crate::cli::args;
use crate::files::{Access, Existing, Target};
use crate::render::export::hyperfine;

/// The file that other tools read.
pub(super) struct Export<'a> {
    file: &'a Path,
    target: Target,
}

impl<'a> Export<'a> {
    /// Before any run: a place that cannot be written is none.
    pub(super) fn open(args: &'a args::Compare) -> anyhow::Result<Option<Self>> {
        let Some(file) = args.between.export_json.as_deref() else {
            return Ok(None);
        };
        let target = Target::open(file, Access::Usual).with_context(|| option(file))?;
        Ok(Some(Self { file, target }))
    }

    /// Each command with its parameters.
    pub(super) fn write(mut self, compared: &Compare, typed: &[Typed]) -> anyhow::Result<()> {
        let command = |typed: &Typed| (typed.command.clone(), typed.values.clone());
        let text = hyperfine::json(compared, &typed.iter().map(command).collect::<Vec<_>>());
        let put = self.target.put(text.as_bytes(), Existing::Replace);
        put.map(drop).with_context(|| option(self.file))
    }
}

fn option(file: &Path) -> String {
    format!("--export-json {}", file.display())
}
