//! Finished runs in a file, a line each, so that an interruption costs no more than the run at hand.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use compare::technique::Setup;
use compare::{Error, Keep, Slot, Spec};
use host::Input;
use model::compare::{Method, Run, Spent};
use serde::{Deserialize, Serialize};

use crate::cli::typed;
use crate::files::{Access, Existing, Target};
use crate::trusted::{Use, own_directory};
use crate::ui::Ui;

/// The first one kept no looks: what they spent is not known.
const SCHEMA: &str = "hugewise/compare-runs/2";

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    schema: String,
    seed: u64,
    program: Vec<String>,
    arms: Vec<String>,
    /// What is judged, in its order: one metric more is one question more.
    #[serde(default)]
    metrics: Vec<String>,
    /// What all looks may spend together.
    #[serde(default)]
    alpha: f64,
    #[serde(default)]
    design: Method,
}

/// What a comparison is of: finished runs of another do not go with it.
pub(super) struct Subject {
    pub(super) program: Vec<String>,
    pub(super) arms: Vec<String>,
    pub(super) metrics: Vec<String>,
    pub(super) design: Method,
}

impl Head {
    pub(super) fn new(seed: u64, alpha: f64, subject: Subject) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            seed,
            program: subject.program,
            arms: subject.arms,
            metrics: subject.metrics,
            alpha,
            design: subject.design,
        }
    }
}

/// Every other line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line<'a> {
    /// A finished run.
    Run(Box<Finished<'a>>),
    /// A look at the verdicts.
    Look { look: Spent },
}

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finished<'a> {
    arm: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<Cow<'a, Way>>,
    run: Cow<'a, Run>,
}

/// How a run got its pages, where an arm has several ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Way {
    /// As `--technique` names it.
    pub(super) technique: String,
    /// In words, with why this one.
    pub(super) words: String,
}

impl Way {
    fn of(setup: &Setup) -> Option<Self> {
        Some(Self {
            technique: setup.way?.to_string(),
            words: setup.words.clone(),
        })
    }
}

/// The file, and what was in it.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    head: Head,
    done: Vec<Finished<'static>>,
    /// Looks that were made.
    looked: Vec<Spent>,
    /// Of each arm.
    ways: Vec<Option<Way>>,
    written: usize,
    /// Was it asked for? Otherwise it goes once the result has been given.
    stays: bool,
}

impl Journal {
    /// Opens the file to go on with, or begins one.
    pub(super) fn open(typed: &typed::Compare, head: Head) -> anyhow::Result<Self> {
        match &typed.resume {
            Some(path) => Self::resume(path, &head),
            None => Self::begin(typed.log.as_deref(), head),
        }
    }

    fn begin(asked: Option<&Path>, head: Head) -> anyhow::Result<Self> {
        let path = match asked {
            Some(path) => path.to_owned(),
            None => usual(head.seed)?,
        };
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.with_context(|| {
            format!(
                "{}: the file for finished runs cannot be made (--resume goes on with one)",
                path.display()
            )
        })?;
        Self::begun(path.clone(), file, head, asked.is_some()).inspect_err(|_| {
            // A disk without room for one line: no empty file stays.
            let _ = std::fs::remove_file(&path);
        })
    }

    /// With its first line.
    fn begun(path: PathBuf, file: File, head: Head, stays: bool) -> anyhow::Result<Self> {
        let journal = Self {
            path,
            file,
            head,
            done: Vec::new(),
            looked: Vec::new(),
            ways: Vec::new(),
            written: 0,
            stays,
        };
        write(&journal.file, &journal.path, &journal.head)?;
        Ok(journal)
    }

    fn resume(path: &Path, wanted: &Head) -> anyhow::Result<Self> {
        let text = finished(path)?;
        let file = OpenOptions::new().write(true).open(path);
        let mut file = file.with_context(|| format!("--resume {}: it cannot be written", path.display()))?;
        if text.is_empty() {
            // It was killed before its first line.
            return Self::begun(path.to_owned(), file, wanted.clone(), true);
        }
        let (head, lines, kept) = parse(path, &text)?;
        must_match(path, &head, wanted)?;
        let (done, looked) = split(lines);
        // A line that was cut by a crash makes way for the next.
        file.set_len(kept)
            .and_then(|()| file.seek(std::io::SeekFrom::End(0)))
            .with_context(|| format!("--resume {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            head,
            ways: Vec::new(),
            written: done.len(),
            done,
            looked,
            stays: true,
        })
    }

    /// The seed of the runs in it, or the one it was begun with.
    pub(super) fn seed(&self) -> u64 {
        self.head.seed
    }

    /// The looks that were in it.
    pub(super) fn looked(&self) -> &[Spent] {
        &self.looked
    }

    /// How the runs of an arm that were in it got their pages.
    pub(super) fn way(&self, arm: &str) -> Option<&Way> {
        self.done.iter().find(|line| line.arm == arm)?.way.as_deref()
    }

    /// How runs get their pages from here on, in the order of the arms.
    pub(super) fn note_ways<'a>(&mut self, setups: impl Iterator<Item = &'a Setup>) {
        self.ways = setups.map(Way::of).collect();
    }

    /// Forgets all runs: those of one design do not go with those of another.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn begin_anew(&mut self, design: Method) -> Result<(), Error> {
        self.head.design = design;
        // No verdict of another design was given.
        self.looked.clear();
        self.rewrite(&[])
    }

    /// The runs that were in it, of whole blocks only (of slices, of whole starts); the file forgets the others. Of a block that
    /// one process began, another cannot make the rest.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn take_whole_starts(&mut self, spec: &Spec) -> Result<Vec<(Slot, Run)>, Error> {
        let per_start = spec.per_start.max(1);
        let slots = (spec.arms.len() + 1) * per_start as usize;
        let start = |line: &Finished<'_>| line.run.block / per_start;
        let of_start = |wanted: u32| self.done.iter().filter(|line| start(line) == wanted).count();
        let is_whole = |line: &&Finished<'static>| of_start(start(line)) == slots;
        let whole: Vec<Finished<'static>> = self.done.iter().filter(is_whole).cloned().collect();
        if whole.len() < self.done.len() {
            self.rewrite(&whole)?;
        }
        Ok(self.take_done(spec))
    }

    /// The file with these runs, and no others; it is replaced whole.
    fn rewrite(&mut self, runs: &[Finished<'static>]) -> Result<(), Error> {
        let replaced = Target::open(&self.path, Access::Usual)
            .and_then(|mut target| target.put(&text(&self.head, runs, &self.looked)?, Existing::Replace))
            .map_err(|error| Error::Keep(format!("{}: {error}", self.path.display())))?;
        // There is none of what is no regular file, and the one at hand goes on.
        if let Some(file) = replaced {
            self.file = file;
        }
        self.done = runs.to_vec();
        self.written = runs.len();
        Ok(())
    }

    /// The runs that were in it.
    pub(super) fn take_done(&mut self, spec: &Spec) -> Vec<(Slot, Run)> {
        let slot = |line: Finished<'static>| {
            let arm = spec.arms.iter().position(|arm| arm.name == line.arm)?;
            let (block, again) = (line.run.block, line.run.again);
            Some((Slot { block, arm, again }, line.run.into_owned()))
        };
        std::mem::take(&mut self.done).into_iter().filter_map(slot).collect()
    }

    /// Says where the finished runs are; a file without any goes.
    pub(super) fn tell(self, ui: &Ui) {
        if self.written == 0 {
            return self.close();
        }
        ui.say(&format!(
            "{} finished runs are in {} (go on with --resume)",
            self.written,
            self.path.display()
        ));
    }

    /// The result holds everything now.
    pub(super) fn close(self) {
        if !self.stays {
            // A file that stays behind does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// All lines of a file.
fn text(head: &Head, runs: &[Finished<'static>], looked: &[Spent]) -> std::io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(head)?;
    for run in runs {
        text.push(b'\n');
        serde_json::to_writer(&mut text, run)?;
    }
    for &look in looked {
        text.push(b'\n');
        serde_json::to_writer(&mut text, &Line::Look { look })?;
    }
    text.push(b'\n');
    Ok(text)
}

/// A line more, in one system call.
fn write(mut file: &File, path: &Path, line: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text).with_context(|| path.display().to_string())
}

impl Keep for Journal {
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error> {
        let line = Finished {
            arm: Cow::Borrowed(self.head.arms.get(slot.arm).map_or("", String::as_str)),
            way: self.ways.get(slot.arm).and_then(Option::as_ref).map(Cow::Borrowed),
            run: Cow::Borrowed(run),
        };
        write(&self.file, &self.path, &line).map_err(|error| Error::Keep(format!("{error:#}")))?;
        self.written += 1;
        Ok(())
    }

    fn look(&mut self, look: Spent) -> Result<(), Error> {
        let kept = write(&self.file, &self.path, &Line::Look { look });
        kept.map_err(|error| Error::Keep(format!("{error:#}")))
    }
}

fn split(lines: Vec<Line<'static>>) -> (Vec<Finished<'static>>, Vec<Spent>) {
    let (mut done, mut looked) = (Vec::new(), Vec::new());
    for line in lines {
        match line {
            Line::Run(run) => done.push(*run),
            Line::Look { look } => looked.push(look),
        }
    }
    (done, looked)
}

/// Other arms, metrics or another error would be another question, asked of the same runs.
fn must_match(path: &Path, head: &Head, wanted: &Head) -> anyhow::Result<()> {
    let path = path.display();
    if head.schema != wanted.schema {
        bail!(
            "--resume {path}: it was written by another version ({}, expected {SCHEMA}), whose looks are not known: begin anew \
             with --log",
            head.schema
        );
    }
    if (&head.program, &head.arms) != (&wanted.program, &wanted.arms) {
        bail!(
            "--resume {path}: it is of `{}` with the arms {}: write the same arms and program",
            head.program.join(" "),
            head.arms.join(",")
        );
    }
    if head.design != wanted.design {
        bail!(
            "--resume {path}: it is of {}: write the same --design and metrics",
            head.design.title()
        );
    }
    if head.metrics != wanted.metrics || (head.alpha - wanted.alpha).abs() > f64::EPSILON {
        bail!(
            "--resume {path}: it judges {}: write the same --metric",
            head.metrics.join(", ")
        );
    }
    Ok(())
}

/// By which design the runs were made that are gone on with; `None` if none are.
///
/// # Errors
/// If the file is none of a comparison.
pub(super) fn design(typed: &typed::Compare) -> anyhow::Result<Option<Method>> {
    let Some(path) = &typed.resume else { return Ok(None) };
    let text = finished(path)?;
    let first = text.lines().next();
    first.map(|line| Ok(head(path, Some(line))?.design)).transpose()
}

/// The head and the finished runs of a log, and the length of its whole lines.
fn parse(path: &Path, text: &str) -> anyhow::Result<(Head, Vec<Line<'static>>, u64)> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines();
    let head = head(path, lines.next())?;
    let done: Result<Vec<Line<'static>>, _> = lines.map(serde_json::from_str).collect();
    let done = done.with_context(|| format!("--resume {}: a line is neither a run nor a look", path.display()))?;
    let kept = if whole.is_empty() { 0 } else { whole.len() as u64 + 1 };
    Ok((head, done, kept))
}

/// For the fuzz target: a log is read or refused, and what is kept of it ends with a line.
pub(in crate::commands) fn read_any(text: &str) {
    if let Ok((_, done, kept)) = parse(Path::new("fuzz"), text) {
        let kept = &text[..usize::try_from(kept).expect("a length")];
        assert!(kept.is_empty() || kept.ends_with('\n'));
        assert!(done.len() < kept.lines().count().max(1));
    }
}

/// The file of `--resume`.
fn finished(path: &Path) -> anyhow::Result<String> {
    let text = Input::FinishedRuns.text(path);
    text.with_context(|| format!("--resume {}", path.display()))
}

fn head(path: &Path, line: Option<&str>) -> anyhow::Result<Head> {
    serde_json::from_str(line.unwrap_or_default()).with_context(|| {
        format!(
            "--resume {}: its first line is not that of a comparison",
            path.display()
        )
    })
}

/// Where finished runs are kept unless told otherwise: the user's state directory (XDG base directories).
fn usual(seed: u64) -> anyhow::Result<PathBuf> {
    let folder = own_directory(Use::State).context("finished runs cannot be kept (--log FILE names another place)")?;
    Ok(folder.join(format!("compare-{}-{seed}.jsonl", std::process::id())))
}
