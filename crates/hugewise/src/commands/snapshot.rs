//! `hugewise snapshot`: a machine in one file.

use std::fs::OpenOptions;
use std::io::Write;

use anyhow::{Context, bail};
use host::record::{CaptureOptions, capture};

use super::{Desk, exists};
use crate::cli::typed;
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Snapshot) -> anyhow::Result<Outcome> {
    let (file, path) = (&typed.file, typed.file.display());
    if exists(file) && !desk.global.yes {
        bail!("{path} is there already (write --yes to replace it, or choose another name)");
    }
    // Opened before the machine is read, so that a wrong name costs nothing.
    let mut options = OpenOptions::new();
    let options = if desk.global.yes {
        options.write(true).create(true)
    } else {
        options.write(true).create_new(true)
    };
    let mut out = options
        .open(file)
        .with_context(|| format!("{path}: the file cannot be written"))?;
    let tree = capture(
        &desk.source,
        CaptureOptions {
            processes: !typed.no_processes,
        },
    );
    let text = tree.to_text();
    out.set_len(0)
        .and_then(|()| out.write_all(text.as_ref()))
        .with_context(|| path.to_string())?;
    desk.ui.note(&format!(
        "{path}: {} files of {}; look through it before you give it away",
        tree.len(),
        desk.source.name()
    ));
    Ok(Outcome::Done)
}
