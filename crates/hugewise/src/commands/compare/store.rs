//! The file of finished runs.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use host::Input;

use crate::cli::args;
use crate::files::{self, Access, Existing, Target};
use crate::trusted::{Use, own_directory};
use crate::ui::Ui;
use model::counted;

/// How long the log of a comparison that was killed is kept: a month.
const KEPT: Duration = Duration::from_secs(31 * 24 * 60 * 60);

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
    pub(super) fn of(args: &args::Compare) -> anyhow::Result<Self> {
        let path = args.resume.as_ref().or(args.log.as_ref()).cloned();
        let open = |path: &PathBuf| opened(path).with_context(|| format!("--resume {}", path.display()));
        let (resumed, file) = args.resume.as_ref().map(open).transpose()?.unzip();
        Ok(Self {
            resumed,
            stays: path.is_some(),
            path,
            file,
        })
    }

    /// A log of that name, which is gone on with if it is there.
    pub(in crate::commands) fn beside(path: &Path) -> anyhow::Result<Self> {
        let opened = files::exists(path).then(|| opened(path)).transpose();
        let (resumed, file) = opened.with_context(|| path.display().to_string())?.unzip();
        Ok(Self {
            resumed,
            path: Some(path.to_owned()),
            file,
            stays: true,
        })
    }

    /// Was a file asked for?
    pub(super) fn is_named(&self) -> bool {
        self.stays
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

    fn begin(&mut self, seed: u64, kept: u64) -> anyhow::Result<()> {
        if let (Some(file), Some(path)) = (&mut self.file, &self.path) {
            // The one that was read: its name may stand for another file by now.
            let cut = file.set_len(kept).and_then(|()| file.seek(SeekFrom::End(0)));
            return cut
                .map(drop)
                .with_context(|| format!("--resume {}: it cannot be written", path.display()));
        }
        let path = match &self.path {
            Some(path) => path.clone(),
            None => {
                let own =
                    own_directory(Use::State).context("no place for the log of runs (--log FILE names another)")?;
                own.join(format!("compare-{}-{seed}.jsonl", std::process::id()))
            }
        };
        let file = files::log(&path, Existing::Refuse).with_context(|| {
            format!(
                "{}: the file for finished runs cannot be made (--resume goes on with one)",
                path.display()
            )
        })?;
        (self.path, self.file) = (Some(path), Some(file));
        Ok(())
    }
}

/// The finished runs of a file, and the file itself for those that follow: opened once.
fn opened(path: &Path) -> anyhow::Result<(String, File)> {
    let file = files::log(path, Existing::Replace)?;
    Ok((Input::FinishedRuns.text_of(&file)?, file))
}

/// Says where the logs of comparisons are that were killed; those of over a month ago go.
pub(super) fn say_left(ui: &Ui) {
    let Ok(directory) = own_directory(Use::State) else {
        return;
    };
    let (left, place) = (sweep(&directory, SystemTime::now()), directory.display());
    if left > 0 {
        let logs = counted(left, "log");
        ui.note(&format!(
            "{logs} of comparisons that were killed in {place}: `--resume FILE` goes on with one, and after a month they are removed"
        ));
    }
}

/// Removes the logs of comparisons that were killed over a month ago; how many of later ones there are.
fn sweep(directory: &Path, now: SystemTime) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut left = 0;
    for entry in entries {
        let name = entry.file_name();
        let name = name
            .to_str()
            .and_then(|name| name.strip_prefix("compare-")?.strip_suffix(".jsonl"));
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file);
        let (Some(name), Some(changed)) = (name, metadata.and_then(|metadata| metadata.modified().ok())) else {
            continue;
        };
        let pid = name.split('-').next().unwrap_or_default();
        if now.duration_since(changed).is_ok_and(|age| age > KEPT) {
            let _ = std::fs::remove_file(entry.path());
        } else if !Path::new("/proc").join(pid).exists() {
            left += 1;
        }
    }
    left
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
        self.begin(seed, kept).map_err(|error| format!("{error:#}"))
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{KEPT, opened, sweep};

    #[test]
    fn logs_of_killed_comparisons_go_after_a_month_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["compare-0-1.jsonl", "compare-0-2.json", "kept.jsonl"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let alive = format!("compare-{}-1.jsonl", std::process::id());
        std::fs::write(folder.path().join(alive), "").expect("written");
        let there = || std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(
            sweep(folder.path(), SystemTime::now()),
            1,
            "the other one's comparison runs"
        );
        assert_eq!(there(), 4);
        assert_eq!(
            sweep(folder.path(), SystemTime::now() + KEPT + Duration::from_secs(1)),
            0
        );
        assert_eq!(there(), 2);
    }

    #[test]
    fn the_file_that_is_read_is_the_one_that_is_written() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().expect("a folder");
        let (log, victim) = (folder.path().join("log"), folder.path().join("victim"));
        std::fs::write(&log, "runs\n").expect("written");
        std::fs::write(&victim, "victim").expect("written");
        let (text, mut file) = opened(&log).expect("opened");
        std::fs::rename(&victim, &log).expect("exchanged in between");
        file.set_len(0)
            .and_then(|()| file.write_all(b"more\n"))
            .expect("written");
        assert_eq!(
            (text.as_str(), std::fs::read_to_string(&log).expect("read").as_str()),
            ("runs\n", "victim")
        );
    }
}
