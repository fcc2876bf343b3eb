//! The files that a checkup leaves: a page to look at, and its result.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::Envelope;

use crate::cli::args::Format;
use crate::files::{self, Existing, Target};
use crate::results::Checkup;
use crate::show::show;
use draw::look::Look;

/// How our pages and results begin, and within how many bytes.
const PAGE: &str = "<meta name=\"generator\" content=\"hugewise\">";
const RESULT: &str = "\"schema\": \"hugewise/";
const HEAD: usize = 1024;

/// The files that stay, found writable before anything is measured. A run that ends without a result leaves old ones as
/// they were.
pub(super) struct Files {
    pub report: Kept,
    pub json: Kept,
}

pub(super) struct Kept {
    pub path: PathBuf,
    target: Target,
}

impl Files {
    pub(super) fn open(report: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let json = report.with_file_name("result.json");
        for (path, mark) in [(report, PAGE), (&json, RESULT)] {
            if !may_replace && !is_own(path, mark) {
                bail!(
                    "{}: there is a file that hugewise did not write (choose another place with --report, or --yes to replace it)",
                    path.display()
                );
            }
        }
        Ok(Self {
            report: Kept::open(report)?,
            json: Kept::open(&json)?,
        })
    }

    pub(super) fn write(&mut self, result: &Envelope<Checkup>) -> anyhow::Result<()> {
        for (kept, form) in [(&mut self.report, Format::Html), (&mut self.json, Format::Json)] {
            let written = kept.target.put(&show(result, form, Look::FILE)?, Existing::Replace);
            written.with_context(|| kept.path.display().to_string())?;
        }
        Ok(())
    }
}

/// May it be replaced: is there no such file, or no regular one, or one that begins as ours do?
fn is_own(path: &Path, mark: &str) -> bool {
    if !path.is_file() {
        return true;
    }
    let mut start = vec![0; HEAD];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|length| length == 0 || String::from_utf8_lossy(&start[..length]).contains(mark))
}

impl Kept {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let target = Target::open(path, files::Access::Usual).with_context(|| {
            let path = path.display();
            format!("{path}: the file cannot be written (choose another place with --report)")
        })?;
        let path = path.to_owned();
        Ok(Self { path, target })
    }
}
