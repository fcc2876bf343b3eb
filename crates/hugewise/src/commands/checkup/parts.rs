//! The parts of a checkup: which are left out and why, and the warnings of the others.

use anyhow::anyhow;
use model::Warning;

use crate::cli::args::Part;
use crate::cli::values::word;
use crate::commands::measuring::Measured;
use crate::results::Skipped;

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
    pub(super) fn read<T>(&mut self, part: Part, make: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        let name = word(&part);
        let made = match self.skip.contains(&part) {
            true => Err(anyhow!("skipped by --skip {name}")),
            false => make(),
        };
        let note = |error: anyhow::Error| {
            self.skipped.push(Skipped {
                part: name,
                why: format!("{error:#}"),
            });
        };
        made.map_err(note).ok()
    }

    /// The same for a measurement; none if the user stopped it.
    pub(super) fn measured<T>(&mut self, part: Part, make: impl FnOnce() -> Measured<T>) -> Option<Option<T>> {
        let is_live = self.is_live;
        let captured = || anyhow!("a captured machine can be read but not measured (run this on the machine itself)");
        match self.read(part, || if is_live { make() } else { Err(captured()) }) {
            Some(None) => None,
            None => Some(None),
            Some(Some((made, warnings))) => {
                self.warnings.extend(warnings);
                Some(Some(made))
            }
        }
    }

    /// Why a part is not there, to be quoted within a sentence.
    pub(super) fn why(&self, part: Part) -> &str {
        let name = word(&part);
        let why = self.skipped.iter().find(|skipped| skipped.part == name);
        why.map_or("", |skipped| skipped.why.trim_end_matches('.'))
    }
}
