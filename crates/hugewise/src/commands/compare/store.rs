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
#[derive(Default)]
pub(in crate::commands) struct Store {
    /// Without one that was asked for, a place in the user's state directory (XDG base directories).
    path: Option<PathBuf>,
    resumed: Option<String>,
    file: Option<File>,
    /// Was it asked for? Otherwise it goes once the result has been given.
    pub(super) stays: bool,
    /// Nothing is written.
    is_nowhere: bool,
}

impl Store {
    /// Of runs of a few minutes, which are not gone on with.
    pub(in crate::commands) fn nowhere() -> Self {
        Self {
            is_nowhere: true,
            ..Self::default()
        }
    }

    /// Reads the log of `--resume`.
    pub(super) fn of(args: &args::Compare) -> anyhow::Result<Self> {
        let open = |path: &Path| opened(path).with_context(|| format!("--resume {}", path.display()));
        let resumed = args.resume.as_deref();
        let opened = resumed.map(open).transpose()?;
        Ok(Self::at(resumed.or(args.log.as_deref()), opened))
    }

    /// A log of that name, which is gone on with if it is there.
    pub(in crate::commands) fn beside(path: &Path) -> anyhow::Result<Self> {
        let opened = files::exists(path).then(|| opened(path)).transpose();
        let opened = opened.with_context(|| path.display().to_string())?;
        Ok(Self::at(Some(path), opened))
    }

    fn at(path: Option<&Path>, opened: Option<(String, File)>) -> Self {
        let (resumed, file) = opened.unzip();
        Self {
            path: path.map(Path::to_owned),
            resumed,
            file,
            stays: path.is_some(),
            is_nowhere: false,
        }
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
        if self.is_nowhere {
            return Ok(());
        }
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

/// Reports the latest log of this program whose comparison was ended before its result: those of others are no news.
pub(super) fn say_left(ui: &Ui, program: &[String]) {
    let Ok(directory) = own_directory(Use::State) else {
        return;
    };
    if let Some((path, runs)) = left(&directory, program, SystemTime::now()) {
        let runs = counted(runs, "run");
        ui.note(&format!(
            "a comparison of this command was ended after {runs}: with the same arms and options --resume {} goes on with it",
            path.display()
        ));
    }
}

/// The latest log with finished runs of a program, of a comparison that has ended. Old ones go.
fn left(directory: &Path, program: &[String], now: SystemTime) -> Option<(PathBuf, usize)> {
    let of_program = |(path, changed): (PathBuf, SystemTime)| {
        if now.duration_since(changed).unwrap_or_default() > KEPT {
            let _ = std::fs::remove_file(path);
            return None;
        }
        // Those of another version of hugewise are not read.
        let (of, runs) = compare::finished(&Input::FinishedRuns.text(&path).ok()?)?;
        (of == program && runs > 0).then_some((changed, path, runs))
    };
    let latest = logs_of_ended(directory).into_iter().filter_map(of_program).max();
    latest.map(|(_, path, runs)| (path, runs))
}

/// Logs of comparisons that no process makes any more, with the time of the last run in them.
fn logs_of_ended(directory: &Path) -> Vec<(PathBuf, SystemTime)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let ended = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_prefix("compare-")?.strip_suffix(".jsonl")?;
        let pid = name.split('-').next().unwrap_or_default();
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let is_alive = Path::new("/proc").join(pid).exists();
        (!is_alive).then_some((entry.path(), metadata.modified().ok()?))
    });
    ended.collect()
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

    use super::{KEPT, left, opened};

    const HEAD: &str =
        "{\"schema\":\"hugewise/compare-runs/4\",\"seed\":1,\"program\":[\"true\"],\"arms\":[\"base\"]}\n";

    #[test]
    fn logs_go_after_a_month() {
        let folder = tempfile::tempdir().expect("a folder");
        let alive = format!("compare-{}-1.jsonl", std::process::id());
        for (name, text) in [
            ("compare-0-1.jsonl", HEAD),
            ("compare-0-2.jsonl", "runs of another version\n"),
            ("compare-0-3.json", HEAD),
            ("kept.jsonl", HEAD),
            (&alive, HEAD),
        ] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let there = |after| {
            let program = ["true".to_owned()];
            assert_eq!(left(folder.path(), &program, SystemTime::now() + after), None);
            std::fs::read_dir(folder.path()).expect("a folder").count()
        };
        assert_eq!(there(Duration::ZERO), 5);
        assert_eq!(
            there(KEPT + Duration::from_secs(1)),
            3,
            "two are logs of comparisons that have ended"
        );
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
