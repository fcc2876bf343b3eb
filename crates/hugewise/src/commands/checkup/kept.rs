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

/// The files that stay, found writable before anything is measured. A run that ends without a result leaves old ones as
/// they were.
pub(super) struct Files {
    pub report: Kept,
    /// None where `--output` takes the same.
    pub json: Option<Kept>,
}

pub(super) struct Kept {
    pub path: PathBuf,
    target: Target,
}

impl Files {
    pub(super) fn open(report: &Path, has_json: bool, may_replace: bool) -> anyhow::Result<Self> {
        let json = report.with_file_name("result.json");
        let json = has_json.then(|| Kept::open(&json, RESULT, may_replace));
        Ok(Self {
            report: Kept::open(report, PAGE, may_replace)?,
            json: json.transpose()?,
        })
    }

    pub(super) fn write(&mut self, result: &Envelope<Checkup>) -> anyhow::Result<()> {
        let json = self.json.as_mut().map(|json| (json, Format::Json));
        for (kept, form) in [(&mut self.report, Format::Html)].into_iter().chain(json) {
            let written = kept.target.put(&show(result, form, Look::FILE)?, Existing::Replace);
            written.with_context(|| kept.path.display().to_string())?;
        }
        Ok(())
    }
}

impl Kept {
    /// A place for a file that is to begin so. One that does not is replaced on request only.
    fn open(path: &Path, mark: &str, may_replace: bool) -> anyhow::Result<Self> {
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
        Ok(Self { path, target })
    }
}
