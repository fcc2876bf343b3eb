//! Finished runs in a log, a line each, so that an interruption costs no more than the run at hand.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use host::Input;
use model::compare::{Method, Run, Spent};
use serde::{Deserialize, Serialize};

use crate::request::{ALPHA, Request};
use crate::technique::Setup;
use crate::{Error, Slot, Spec, Store};

/// The first one kept no looks, and the second not all that runs are made with.
const SCHEMA: &str = "hugewise/compare-runs/3";

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
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
    /// What else the runs were made with, by option: runs made with something else are answers to another question.
    #[serde(default)]
    made_with: BTreeMap<String, String>,
}

impl Head {
    pub(crate) fn new(
        program: Vec<String>,
        arms: Vec<String>,
        request: &Request,
        design: Method,
        file: Option<&Path>,
    ) -> Self {
        let asked = request.task.asked.iter();
        Self {
            schema: SCHEMA.to_owned(),
            seed: request.seed,
            program,
            arms,
            metrics: asked.map(|asked| asked.wanted.name.clone()).collect(),
            alpha: ALPHA,
            design,
            made_with: made_with(request, file),
        }
    }
}

/// The key of the program's file, which is no option.
const BUILD: &str = "the program's file";

/// Everything that changes what a run is or is worth, as it was typed. `file` is the program's, whose bytes count.
fn made_with(request: &Request, file: Option<&Path>) -> BTreeMap<String, String> {
    let task = &request.task;
    let mut all = BTreeMap::new();
    let mut add = |option: &str, value: Option<String>| {
        all.extend(value.map(|value| (option.to_owned(), value)));
    };
    for asked in &task.asked {
        let (wanted, from) = (&asked.wanted, &asked.from);
        let pattern = asked.pattern.as_ref().map(ToString::to_string);
        let direction = if wanted.higher { "higher" } else { "lower" };
        let value = format!("{}, {direction}, {from:?}", pattern.unwrap_or_default());
        add(&format!("--metric {}", wanted.name), Some(value));
    }
    if let Some(server) = &task.server {
        add("--load", Some(server.load.clone()));
        add("--ready", server.ready.clone());
        add("--stop", server.stop.clone());
        add("--load-warm-up", Some(server.warm_up.to_string()));
        add("--loads", Some(server.loads.to_string()));
    }
    let file_of_arms = request.arms_file.as_ref();
    add("--arms-file", file_of_arms.map(|file| hash(file.text.as_bytes())));
    for (name, command) in &request.commands {
        add(&format!("the command {name}"), Some(command.identity()));
    }
    add("--slice", request.slice.map(|slice| format!("{slice:?}")));
    add("--threads", Some(request.threads.to_string()));
    add("--range", Some(format!("{:?}", request.range)));
    add("--warm-up", Some(request.warm_up.to_string()));
    add("--order", Some(format!("{:?}", request.order)));
    add("--least-coverage", Some(request.least_coverage.to_string()));
    add("--ignore-failure", Some(request.ignore_failure.to_string()));
    let bytes = file.and_then(|file| Some((file, Input::Program.read(file).ok()?)));
    add(
        BUILD,
        bytes.map(|(file, bytes)| format!("{}, {} bytes, {}", file.display(), bytes.len(), hash(&bytes))),
    );
    all
}

/// FNV-1a of 64 bits: it tells builds apart, and keeps nobody from making two alike.
fn hash(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Run(Box<Finished<'a>>),
    Look { look: Spent },
}

impl Line<'static> {
    /// Read by its key: an untagged enum would not take the numbers of CPUs, which are keys, for numbers.
    fn read(text: &str) -> serde_json::Result<Self> {
        let mut line: serde_json::Value = serde_json::from_str(text)?;
        match line.get_mut("look") {
            Some(look) => serde_json::from_value(look.take()).map(|look| Line::Look { look }),
            None => serde_json::from_value(line).map(|run| Line::Run(Box::new(run))),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finished<'a> {
    arm: Cow<'a, str>,
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
    head: Head,
    done: Vec<Finished<'static>>,
    looked: Vec<Spent>,
    ways: Vec<Option<Way>>,
    written: usize,
}

impl<'a> RunLog<'a> {
    /// Nothing is written yet.
    pub fn new(store: &'a mut dyn Store) -> Self {
        Self {
            store,
            head: Head::default(),
            done: Vec::new(),
            looked: Vec::new(),
            ways: Vec::new(),
            written: 0,
        }
    }

    /// The design of the runs that are gone on with; `None` if none are.
    ///
    /// # Errors
    /// If the log is none of a comparison.
    pub(crate) fn design(&self) -> Result<Option<Method>, Error> {
        let first = self.store.resumed().and_then(|text| text.lines().next());
        let head = first.map(|line| head(Some(line)).map_err(|why| self.not_resumed(why)));
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
        let parsed = parse(text).and_then(|(head, lines, kept)| {
            must_match(&head, &wanted)?;
            Ok((head, lines, kept))
        });
        let (head, lines, kept) = parsed.map_err(|why| self.not_resumed(why))?;
        // A line that was cut by a crash makes way for the next.
        self.store.open(head.seed, kept).map_err(Error::Keep)?;
        (self.done, self.looked) = split(lines);
        self.head = head;
        self.written = self.done.len();
        Ok(())
    }

    fn begin(&mut self, head: Head) -> Result<(), Error> {
        let is_new = self.store.resumed().is_none();
        self.store.open(head.seed, 0).map_err(Error::Keep)?;
        self.head = head;
        let written = self.add(serde_json::to_vec(&self.head));
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
        self.head.seed
    }

    /// The looks that were in it.
    pub(crate) fn looked(&self) -> &[Spent] {
        &self.looked
    }

    /// How the runs of an arm that were in it got their pages.
    pub(crate) fn way(&self, arm: &str) -> Option<&Way> {
        self.done.iter().find(|line| line.arm == arm)?.way.as_deref()
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
    pub(crate) fn take_whole_starts(&mut self, spec: &Spec) -> Result<Vec<(Slot, Run)>, Error> {
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
        text(&self.head, runs, &self.looked)
            .and_then(|text| self.store.replace(&text))
            .map_err(|error| Error::Keep(format!("{}: {error}", self.store.name())))?;
        self.done = runs.to_vec();
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
        std::mem::take(&mut self.done).into_iter().filter_map(slot).collect()
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

impl Keep for RunLog<'_> {
    fn keep(&mut self, slot: Slot, run: &Run) -> Result<(), Error> {
        let line = Finished {
            arm: Cow::Borrowed(self.head.arms.get(slot.arm).map_or("", String::as_str)),
            way: self.ways.get(slot.arm).and_then(Option::as_ref).map(Cow::Borrowed),
            run: Cow::Borrowed(run),
        };
        let line = serde_json::to_vec(&line);
        self.add(line)?;
        self.written += 1;
        Ok(())
    }

    fn look(&mut self, look: Spent) -> Result<(), Error> {
        self.add(serde_json::to_vec(&Line::Look { look }))
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
fn must_match(head: &Head, wanted: &Head) -> Result<(), String> {
    if head.schema != wanted.schema {
        return Err(format!(
            "it was written by another version ({}, expected {SCHEMA}), whose looks are not known: begin anew with --log",
            head.schema
        ));
    }
    if (&head.program, &head.arms) != (&wanted.program, &wanted.arms) {
        return Err(format!(
            "it is of `{}` with the arms {}: write the same arms and program",
            head.program.join(" "),
            head.arms.join(",")
        ));
    }
    if head.design != wanted.design {
        return Err(format!(
            "it is of {}: write the same --design and metrics",
            head.design.title()
        ));
    }
    if head.metrics != wanted.metrics || (head.alpha - wanted.alpha).abs() > f64::EPSILON {
        return Err(format!(
            "it judges {}: write the same --metric",
            head.metrics.join(", ")
        ));
    }
    match differences(&head.made_with, &wanted.made_with) {
        differs if differs.is_empty() => Ok(()),
        differs => Err(format!(
            "its runs were made otherwise ({differs}): write the same, or begin anew with --log"
        )),
    }
}

/// What differs, with both values; of the program's file that it is another.
fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let options: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differs = options
        .into_iter()
        .filter(|option| before.get(*option) != now.get(*option));
    let said = differs.map(|option| {
        let value = |of: &BTreeMap<String, String>| {
            of.get(option)
                .map_or("not there".to_owned(), |value| format!("`{value}`"))
        };
        match option.as_str() {
            BUILD => format!("{BUILD} has changed since: {} was {}", value(now), value(before)),
            "--arms-file" => "--arms-file has other contents".to_owned(),
            _ => format!("{option}: {}, now {}", value(before), value(now)),
        }
    });
    said.collect::<Vec<_>>().join("; ")
}

/// The head and the finished runs of a log, and the length of its whole lines.
fn parse(text: &str) -> Result<(Head, Vec<Line<'static>>, u64), String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines();
    let head = head(lines.next())?;
    let done: Result<Vec<Line<'static>>, _> = lines.map(Line::read).collect();
    let done = done.map_err(|error| format!("a line is neither a run nor a look: {error}"))?;
    let kept = if whole.is_empty() { 0 } else { whole.len() as u64 + 1 };
    Ok((head, done, kept))
}

/// For the fuzz target: a log is read or refused, and what is kept of it ends with a line.
pub(crate) fn read_any(text: &str) {
    if let Ok((_, done, kept)) = parse(text) {
        let kept = &text[..usize::try_from(kept).expect("a length")];
        assert!(kept.is_empty() || kept.ends_with('\n'));
        assert!(done.len() < kept.lines().count().max(1));
    }
}

fn head(line: Option<&str>) -> Result<Head, String> {
    let head = serde_json::from_str(line.unwrap_or_default());
    head.map_err(|error| format!("its first line is not that of a comparison: {error}"))
}

#[cfg(test)]
#[path = "runlog_tests.rs"]
mod tests;
