//! The file of `--export-json`, which other tools read.

use std::path::Path;

use anyhow::Context;
use model::compare::Compare;

use super::between::{Typed, Values};
use crate::cli::args;
use crate::files::{Access, Existing, Target};
use crate::render::prove::compare::exported;

/// The file that other tools read, and each command with its parameters.
pub(super) struct Export<'a> {
    file: &'a Path,
    target: Target,
    commands: Vec<(String, Values)>,
}

impl<'a> Export<'a> {
    /// Before any run: a place that cannot be written is none.
    pub(super) fn open(args: &'a args::Compare, typed: &[Typed]) -> anyhow::Result<Option<Self>> {
        let Some(file) = args.between.export_json.as_deref() else {
            return Ok(None);
        };
        Ok(Some(Self {
            file,
            target: Target::open(file, Access::Usual).with_context(|| option(file))?,
            commands: typed
                .iter()
                .map(|typed| (typed.command.clone(), typed.values.clone()))
                .collect(),
        }))
    }

    pub(super) fn write(mut self, compared: &Compare) -> anyhow::Result<()> {
        let text = exported::json(compared, &self.commands);
        let put = self.target.put(text.as_bytes(), Existing::Replace);
        put.map(drop).with_context(|| option(self.file))
    }
}

fn option(file: &Path) -> String {
    format!("--export-json {}", file.display())
}
