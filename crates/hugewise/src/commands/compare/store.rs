//! The file of finished runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use host::Input;

use crate::cli::typed;
use crate::files::{Access, Existing, Target};
use crate::trusted::{Use, own_directory};
use crate::ui::Ui;

/// A log that is begun or gone on with.
pub(in crate::commands) struct Store {
    /// Without one that was asked for, a place in the user's state directory (XDG base directories).
    path: Option<PathBuf>,
    resumed: Option<String>,
    file: Option<File>,
    /// Was it asked for? Otherwise it goes once the result has been given.
    stays: bool,
}

impl Store {
    /// Reads the log of `--resume`.
    pub(super) fn of(typed: &typed::Compare) -> anyhow::Result<Self> {
        let read = |path: &PathBuf| {
            let text = Input::FinishedRuns.text(path);
            text.with_context(|| format!("--resume {}", path.display()))
        };
        let path = typed.resume.as_ref().or(typed.log.as_ref()).cloned();
        Ok(Self {
            resumed: typed.resume.as_ref().map(read).transpose()?,
            stays: path.is_some(),
            path,
            file: None,
        })
    }

    /// A log of that name, which is gone on with if it is there.
    pub(in crate::commands) fn beside(path: &Path) -> anyhow::Result<Self> {
        let resumed = path.is_file().then(|| Input::FinishedRuns.text(path)).transpose();
        Ok(Self {
            resumed: resumed.with_context(|| path.display().to_string())?,
            path: Some(path.to_owned()),
            file: None,
            stays: true,
        })
    }

    /// Reports where the finished runs are; a file without any is not kept.
    pub(super) fn leave(self, written: usize, ui: &Ui) {
        if written == 0 {
            return self.close();
        }
        let name = compare::Store::name(&self);
        ui.say(&format!("{written} finished runs are in {name} (go on with --resume)"));
    }

    /// The result holds everything now.
    pub(super) fn close(mut self) {
        if !self.stays && self.file.is_some() {
            compare::Store::remove(&mut self);
        }
    }

    fn opened(&mut self, seed: u64, kept: u64) -> anyhow::Result<()> {
        let path = match &self.path {
            Some(path) => path.clone(),
            None => own_directory(Use::State)
                .context("finished runs cannot be kept (--log FILE names another place)")?
                .join(format!("compare-{}-{seed}.jsonl", std::process::id())),
        };
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(self.resumed.is_none()).open(&path);
        let name = path.display();
        let mut file = file.with_context(|| match self.resumed {
            None => format!("{name}: the file for finished runs cannot be made (--resume goes on with one)"),
            Some(_) => format!("--resume {name}: it cannot be written"),
        })?;
        if kept > 0 {
            let cut = file.set_len(kept).and_then(|()| file.seek(SeekFrom::End(0)));
            cut.with_context(|| format!("--resume {name}"))?;
        }
        (self.path, self.file) = (Some(path), Some(file));
        Ok(())
    }
}

impl compare::Store for Store {
    fn name(&self) -> String {
        let path = self.path.as_ref();
        path.map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn resumed(&self) -> Option<&str> {
        self.resumed.as_deref()
    }

    fn open(&mut self, seed: u64, kept: u64) -> Result<(), String> {
        self.opened(seed, kept).map_err(|error| format!("{error:#}"))
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.iter_mut().try_for_each(|file| file.write_all(line))
    }

    fn replace(&mut self, text: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let replaced = Target::open(path, Access::Usual)?.put(text, Existing::Replace)?;
        // There is none of what is no regular file, and the one at hand goes on.
        self.file = replaced.or(self.file.take());
        Ok(())
    }

    fn remove(&mut self) {
        // A file that stays behind does no harm.
        let _ = self.path.as_ref().map(std::fs::remove_file);
    }
}
