//! The parts of a checkup: which are left out and why, and the warnings of the others.

use anyhow::anyhow;
use model::Warning;

use crate::cli::args::Part;
use crate::cli::values::word;
use crate::commands::measuring::Measured;
use crate::results::Skipped;
use crate::stop::is_interrupted;

/// What became of the parts so far.
pub(super) struct Parts<'a> {
    skip: &'a [Part],
    is_live: bool,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<Warning>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(skip: &'a [Part], is_live: bool) -> Self {
        Self {
            skip,
            is_live,
            skipped: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The part, or an entry among the skipped ones.
    ///
    /// # Errors
    /// If the user stopped it, which is no reason to skip a part.
    pub(super) fn read<T>(
        &mut self,
        part: Part,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let name = word(&part);
        let made = match self.skip.contains(&part) {
            true => Err(anyhow!("skipped by --skip {name}")),
            false => make(),
        };
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if is_interrupted(&error) => Err(error),
            Err(error) => {
                let why = format!("{error:#}");
                self.skipped.push(Skipped { part: name, why });
                Ok(None)
            }
        }
    }

    /// The same for a measurement.
    pub(super) fn measured<T>(&mut self, part: Part, make: impl FnOnce() -> Measured<T>) -> anyhow::Result<Option<T>> {
        let is_live = self.is_live;
        let captured = || anyhow!("a captured machine can be read but not measured (run this on the machine itself)");
        let made = self.read(part, || if is_live { make() } else { Err(captured()) })?;
        Ok(made.map(|(made, warnings)| {
            self.warnings.extend(warnings);
            made
        }))
    }

    /// Why a part is not there, to be quoted within a sentence.
    pub(super) fn why(&self, part: Part) -> &str {
        let name = word(&part);
        let why = self.skipped.iter().find(|skipped| skipped.part == name);
        why.map_or("", |skipped| skipped.why.trim_end_matches('.'))
    }
}
