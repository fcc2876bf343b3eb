//! The directory that holds what finished: a result and a page for each experiment, and the report of all.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::Input;
use model::Envelope;
use model::suite::{Experiment, Page, Suite};

use crate::cli::args::Format;
use crate::files::{Access, Existing, Target};
use crate::show::{Shape, show};
use crate::trusted::{Use, own_directory, to_be_run};
use draw::Look;

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
}

impl Directory {
    /// One that is there, or a new one of this user's.
    pub(super) fn open(resumed: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = resumed {
            if !path.is_dir() {
                bail!("--resume {}: there is no such directory", path.display());
            }
            let path = to_be_run(path).with_context(|| format!("--resume {}", path.display()))?;
            return Ok(Self { path });
        }
        let own = own_directory(Use::State).context("results have to be kept somewhere")?;
        for number in 1.. {
            let path = own.join(format!("suite-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        bail!("{}: no name is free", own.display())
    }

    /// Where the finished runs of an experiment are until it has ended.
    pub(super) fn runs(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.jsonl"))
    }

    /// The page of an experiment that finished before.
    ///
    /// # Errors
    /// If another one of that name is kept: the files of experiments have names of their own choice.
    pub(super) fn page(&self, experiment: &Experiment) -> anyhow::Result<Option<Page>> {
        let result = self.result::<Suite>(&experiment.name)?;
        let page = result.and_then(|result| result.data.pages.into_iter().next());
        let is_other =
            |page: &&Page| page.experiment.workload != experiment.workload || page.experiment.arms != experiment.arms;
        if let Some(other) = page.as_ref().filter(is_other) {
            let (directory, Experiment { workload, arms, .. }) = (self.path.display(), &other.experiment);
            bail!(
                "--resume {directory}: the result of {} is one of `{workload}` with the arms {}, and other ones are asked for \
                 (leave --resume out)",
                experiment.name,
                arms.join(",")
            );
        }
        Ok(page)
    }

    pub(super) fn result<T: Shape>(&self, name: &str) -> anyhow::Result<Option<Envelope<T>>> {
        let path = self.path.join(format!("{name}.json"));
        if !path.is_file() {
            return Ok(None);
        }
        let text = Input::Result.read(&path).with_context(|| path.display().to_string())?;
        let result = serde_json::from_slice(&text);
        let path = path.display();
        result.with_context(|| format!("{path}: it is not what an experiment leaves (remove it to repeat it)"))
    }

    /// Keeps the result of an experiment and its page, in place of its runs.
    pub(super) fn keep<T: Shape>(&self, name: &str, result: &Envelope<T>) -> anyhow::Result<()> {
        for form in [Format::Html, Format::Json] {
            let path = self.path.join(format!("{name}.{}", form.name()));
            let bytes = show(result, form, Look::FILE)?;
            let put = Target::open(&path, Access::Usual).and_then(|mut target| target.put(&bytes, Existing::Replace));
            put.with_context(|| path.display().to_string())?;
        }
        // A file that stays behind does no harm.
        let _ = std::fs::remove_file(self.runs(name));
        Ok(())
    }
}
