//! The files that a checkup leaves: a page to look at, and its result.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::Envelope;

use crate::cli::args::Format;
use crate::files::{self, Existing, Target};
use crate::results::Checkup;
use crate::show::show;
use draw::Look;

/// How our pages and results begin, and within how many bytes.
const PAGE: &str = "<meta name=\"generator\" content=\"hugewise\">";
const RESULT: &str = "\"schema\": \"hugewise/";
const HEAD: u64 = 1024;

/// A file that stays, found writable before anything is measured. A run that ends without a result leaves an old one as it was.
pub(super) struct Kept {
    path: PathBuf,
    target: Target,
    form: Format,
}

/// The page, and the result unless `--output` takes the same.
pub(super) fn open(report: &Path, has_json: bool, may_replace: bool) -> anyhow::Result<Vec<Kept>> {
    let mut files = vec![Kept::open(report, Format::Html, PAGE, may_replace)?];
    if has_json {
        let json = report.with_file_name("result.json");
        files.push(Kept::open(&json, Format::Json, RESULT, may_replace)?);
    }
    Ok(files)
}

impl Kept {
    pub(super) fn write(&mut self, result: &Envelope<Checkup>) -> anyhow::Result<()> {
        let bytes = show(result, self.form, Look::FILE)?;
        let written = self.target.put(&bytes, Existing::Replace);
        written.map(drop).with_context(|| self.name())
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// A place for a file that is to begin so. One that does not is replaced on request only.
    fn open(path: &Path, form: Format, mark: &str, may_replace: bool) -> anyhow::Result<Self> {
        let name = path.display();
        let target = Target::open(path, files::Access::Usual)
            .with_context(|| format!("{name}: the file cannot be written (choose another place with --report)"))?;
        let start = target.beginning(HEAD).unwrap_or_else(|error| error.to_string().into());
        if !may_replace && !start.is_empty() && !String::from_utf8_lossy(&start).contains(mark) {
            bail!(
                "{name}: there is a file that hugewise did not write (choose another place with --report, or --yes to replace it)"
            );
        }
        let path = path.to_owned();
        Ok(Self { path, target, form })
    }
}
