//! Finished runs in a log, a line each, so that an interruption costs no more than the run at hand.

mod head;

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use model::compare::{Method, Run, Spent};
use serde::{Deserialize, Serialize};

pub(crate) use self::head::{BUILD, FILE_OF, Head};
use crate::technique::Setup;
use crate::{Error, Slot, Spec, Store};

/// What is in a log.
#[derive(Default)]
struct Parsed {
    head: Head,
    done: Vec<Finished<'static>>,
    looked: Vec<Spent>,
    /// The length of its whole lines.
    kept: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finished<'a> {
    arm: Cow<'a, str>,
    /// When it ended, in seconds of all sessions together; 0 in logs of before.
    #[serde(default)]
    at: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<Cow<'a, Way>>,
    run: Cow<'a, Run>,
}

/// How a run got its pages, where an arm has several ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Way {
    /// As `--technique` names it.
    pub(crate) technique: String,
    /// In words, with why this one.
    pub(crate) words: String,
}

impl Way {
    fn of(setup: &Setup) -> Option<Self> {
        Some(Self {
            technique: setup.way?.to_string(),
            words: setup.words.clone(),
        })
    }
}

/// Where finished runs are kept at once, so that nothing is lost.
pub trait Keep {
    /// Keeps one run.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error>;
    /// Keeps that the verdicts were looked at: a session that goes on with these runs may spend the less.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn look(&mut self, _look: Spent) -> Result<(), Error> {
        Ok(())
    }
}

/// Nothing is kept.
#[cfg(test)]
impl Keep for () {
    fn keep(&mut self, _: Slot, _: &Run) -> Result<(), Error> {
        Ok(())
    }
}

/// The log, and what was in it.
pub struct RunLog<'a> {
    store: &'a mut dyn Store,
    /// What was in it.
    held: Parsed,
    ways: Vec<Option<Way>>,
    written: usize,
    /// How long the sessions took whose runs were in it, and when this one began.
    earlier: Duration,
    began: Instant,
}

impl<'a> RunLog<'a> {
    /// Nothing is written yet.
    pub fn new(store: &'a mut dyn Store) -> Self {
        Self {
            store,
            held: Parsed::default(),
            ways: Vec::new(),
            written: 0,
            earlier: Duration::ZERO,
            began: Instant::now(),
        }
    }

    /// The design of the runs that are gone on with; `None` if none are.
    ///
    /// # Errors
    /// If the log is none of a comparison.
    pub(crate) fn design(&self) -> Result<Option<Method>, Error> {
        let first = self.store.resumed().and_then(|text| text.lines().next());
        let head = first.map(|line| Head::read(Some(line)).map_err(|why| self.not_resumed(why)));
        Ok(head.transpose()?.map(|head| head.design))
    }

    /// Opens it to go on with, or begins it.
    ///
    /// # Errors
    /// If it cannot be written, or holds runs of another comparison.
    pub(crate) fn open(&mut self, wanted: Head) -> Result<(), Error> {
        let Some(text) = self.store.resumed().filter(|text| !text.is_empty()) else {
            // It is new, or its session was killed before the first line.
            return self.begin(wanted);
        };
        let parsed = Parsed::of(text).and_then(|parsed| parsed.head.must_match(&wanted).map(|()| parsed));
        let parsed = parsed.map_err(|why| self.not_resumed(why))?;
        // A line that was cut by a crash makes way for the next.
        self.store.open(parsed.head.seed, parsed.kept).map_err(Error::Keep)?;
        self.held = parsed;
        let ended = self.held.done.iter().map(|line| line.at).fold(0.0, f64::max);
        self.earlier = Duration::try_from_secs_f64(ended).unwrap_or_default();
        self.written = self.held.done.len();
        Ok(())
    }

    fn begin(&mut self, head: Head) -> Result<(), Error> {
        let is_new = self.store.resumed().is_none();
        self.store.open(head.seed, 0).map_err(Error::Keep)?;
        self.held.head = head;
        let written = self.add(serde_json::to_vec(&self.held.head));
        if written.is_err() && is_new {
            // A disk without room for one line: no empty file stays.
            self.store.remove();
        }
        written
    }

    fn add(&mut self, line: serde_json::Result<Vec<u8>>) -> Result<(), Error> {
        let written = line.map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.store.append(&line)
        });
        written.map_err(|error| Error::Keep(format!("{}: {error}", self.store.name())))
    }

    fn not_resumed(&self, why: String) -> Error {
        Error::asked(format!("--resume {}", self.store.name()), why)
    }

    /// How many finished runs are in it.
    pub fn written(&self) -> usize {
        self.written
    }

    /// The seed of the runs in it, or the one it was begun with.
    pub fn seed(&self) -> u64 {
        self.held.head.seed
    }

    /// The experiment, whose runs go on with those that were in it.
    pub(crate) fn resumed(&self, mut spec: Spec) -> Spec {
        (spec.looked, spec.earlier, spec.seed) = (self.held.looked.clone(), self.earlier, self.seed());
        spec
    }

    /// How the runs of an arm that were in it got their pages.
    pub(crate) fn way(&self, arm: &str) -> Option<&Way> {
        self.held.done.iter().find(|line| line.arm == arm)?.way.as_deref()
    }

    /// How runs get their pages from here on, in the order of the arms.
    pub(crate) fn note_ways<'s>(&mut self, setups: impl Iterator<Item = &'s Setup>) {
        self.ways = setups.map(Way::of).collect();
    }

    /// Forgets all runs: those of one design do not go with those of another.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn begin_anew(&mut self, design: Method) -> Result<(), Error> {
        self.held.head.design = design;
        // No verdict of another design was given.
        self.held.looked.clear();
        self.earlier = Duration::ZERO;
        self.rewrite(&[])
    }

    /// The runs that were in it, of whole blocks only (of slices, of whole starts); the file forgets the others. Of a block that
    /// one process began, another cannot make the rest.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn take_whole_starts(&mut self, spec: &Spec) -> Result<Vec<(Slot, Run)>, Error> {
        let per_start = spec.per_start;
        let slots = (spec.arms.len() + 1) * per_start as usize;
        let start = |line: &Finished<'_>| line.run.block / per_start;
        let of_start = |wanted: u32| self.held.done.iter().filter(|line| start(line) == wanted).count();
        let is_whole = |line: &&Finished<'static>| of_start(start(line)) == slots;
        let whole: Vec<Finished<'static>> = self.held.done.iter().filter(is_whole).cloned().collect();
        if whole.len() < self.held.done.len() {
            self.rewrite(&whole)?;
        }
        Ok(self.take_done(spec))
    }

    /// The file with these runs, and no others; it is replaced whole.
    fn rewrite(&mut self, runs: &[Finished<'static>]) -> Result<(), Error> {
        text(&self.held.head, runs, &self.held.looked)
            .and_then(|text| self.store.replace(&text))
            .map_err(|error| Error::Keep(format!("{}: {error}", self.store.name())))?;
        self.held.done = runs.to_vec();
        self.written = runs.len();
        Ok(())
    }

    /// The runs that were in it.
    pub(crate) fn take_done(&mut self, spec: &Spec) -> Vec<(Slot, Run)> {
        let slot = |line: Finished<'static>| {
            let arm = spec.arms.iter().position(|arm| arm.name == line.arm)?;
            let (block, again) = (line.run.block, line.run.again);
            Some((Slot { block, arm, again }, line.run.into_owned()))
        };
        std::mem::take(&mut self.held.done)
            .into_iter()
            .filter_map(slot)
            .collect()
    }
}

fn line_of(look: Spent) -> serde_json::Value {
    serde_json::json!({ "look": look })
}

/// All lines of a file.
fn text(head: &Head, runs: &[Finished<'static>], looked: &[Spent]) -> std::io::Result<Vec<u8>> {
    let runs = runs.iter().map(serde_json::to_vec);
    let looked = looked.iter().map(|&look| serde_json::to_vec(&line_of(look)));
    let mut text = Vec::new();
    for line in std::iter::once(serde_json::to_vec(head)).chain(runs).chain(looked) {
        text.extend(line?);
        text.push(b'\n');
    }
    Ok(text)
}

impl Keep for RunLog<'_> {
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error> {
        let line = Finished {
            arm: Cow::Borrowed(self.held.head.arms.get(slot.arm).map_or("", String::as_str)),
            at: (self.earlier + self.began.elapsed()).as_secs_f64(),
            way: self.ways.get(slot.arm).and_then(Option::as_ref).map(Cow::Borrowed),
            run: Cow::Borrowed(run),
        };
        let line = serde_json::to_vec(&line);
        self.add(line)?;
        self.written += 1;
        Ok(())
    }

    fn look(&mut self, look: Spent) -> Result<(), Error> {
        self.add(serde_json::to_vec(&line_of(look)))
    }
}

impl Parsed {
    fn of(text: &str) -> Result<Self, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        let mut parsed = Self {
            head: Head::read(lines.next())?,
            kept: if whole.is_empty() { 0 } else { whole.len() as u64 + 1 },
            ..Self::default()
        };
        for line in lines {
            let added = parsed.add(line);
            added.map_err(|error| format!("a line is neither a run nor a look: {error}"))?;
        }
        Ok(parsed)
    }

    /// Read by its key: an untagged enum would not take the numbers of CPUs, which are keys, for numbers.
    fn add(&mut self, line: &str) -> serde_json::Result<()> {
        let mut line: serde_json::Value = serde_json::from_str(line)?;
        match line.get_mut("look") {
            Some(look) => self.looked.push(serde_json::from_value(look.take())?),
            None => self.done.push(serde_json::from_value(line)?),
        }
        Ok(())
    }
}

/// The program of a log's runs, and how many are finished; `None` of a log that this version does not read.
pub fn finished(text: &str) -> Option<(Vec<String>, usize)> {
    let parsed = Parsed::of(text).ok()?;
    Some((parsed.head.program, parsed.done.len()))
}

/// For the fuzz target: a log is read or refused, and what is kept of it ends with a line.
pub(crate) fn read_any(text: &str) {
    if let Ok(parsed) = Parsed::of(text) {
        let kept = &text[..usize::try_from(parsed.kept).expect("a length")];
        assert!(kept.is_empty() || kept.ends_with('\n'));
        assert!(parsed.done.len() + parsed.looked.len() < kept.lines().count().max(1));
    }
}

#[cfg(test)]
#[path = "runlog_tests.rs"]
mod tests;
