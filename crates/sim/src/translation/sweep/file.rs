//! The file of a sweep: TOML with a list for each axis. Errors name the file, the line, and what is expected.

use std::fmt::Display;
use std::str::FromStr;

use model::Bytes;
use serde::Deserialize;
use toml::Spanned;

use super::axes::RawParameters;
use super::parameters::Axes;
use super::texts::{page, settings, working_set};
use super::typed::{SweepError, Typed};
use crate::translation::engine::Mode;
use crate::translation::patterns::Pattern;
use crate::translation::study::Setting;
use crate::typed_file::TypedFile;

/// A sweep as its file has it; machines and traces are names still.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The file's name, for messages.
    pub file: String,
    /// CPUs of the table, or machine files.
    pub machines: Vec<Typed<String>>,
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Files of traces.
    pub traces: Vec<Typed<String>>,
    /// Memory that patterns use.
    pub working_sets: Vec<Bytes>,
    /// Modes with their pages.
    pub settings: Vec<Typed<Setting>>,
    /// The setting that times are relative to.
    pub baseline: Setting,
    /// Values in place of the machines' own.
    pub parameters: Axes,
    /// Accesses of a pattern that each point counts.
    pub accesses: u64,
    /// Accesses before them.
    pub warm_up: u64,
    /// The seed, if the file has one.
    pub seed: Option<u32>,
}

type Texts = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    machines: Option<Texts>,
    patterns: Option<Texts>,
    traces: Option<Texts>,
    working_sets: Option<Texts>,
    modes: Option<Texts>,
    pages: Option<Texts>,
    guest_pages: Option<Texts>,
    host_pages: Option<Texts>,
    baseline: Option<Spanned<String>>,
    accesses: Option<Spanned<u64>>,
    warm_up: Option<u64>,
    seed: Option<u32>,
    #[serde(default)]
    parameters: RawParameters,
}

/// Accesses of a point where the file does not say.
const ACCESSES: u64 = 1_000_000;

impl Sweep {
    /// The text of a sweep, which errors call `file`.
    ///
    /// # Errors
    /// With the line, if it is none.
    pub fn parse(file: &str, text: &str) -> Result<Self, SweepError> {
        let file = TypedFile { name: file, text };
        file.sweep(file.read()?)
    }

    /// An error at a line.
    pub(super) fn wrong(&self, line: usize, why: impl Display) -> SweepError {
        SweepError::Value {
            file: self.file.clone(),
            line,
            why: why.to_string(),
        }
    }
}

impl TypedFile<'_> {
    fn sweep(self, raw: Raw) -> Result<Sweep, SweepError> {
        let machines = self.names("machines", raw.machines)?;
        if machines.is_empty() {
            return Err(self.missing("no machines: write machines = [\"8452y\", \"epyc-9654\"] (`simulate translation --machine list` lists the CPUs)"));
        }
        let patterns = values(self.parsed::<Pattern>("patterns", raw.patterns)?);
        let traces = self.names("traces", raw.traces)?;
        if patterns.is_empty() && traces.is_empty() {
            return Err(self.missing("no input: write patterns = [\"chase\"] or traces = [\"FILE\"]"));
        }
        let working_sets = self.checked("working_sets", raw.working_sets, working_set)?;
        if !patterns.is_empty() && working_sets.is_empty() {
            return Err(self.missing("patterns need working sets: write working_sets = [\"64M\", \"1G\"]"));
        }
        let modes = self.parsed::<Mode>("modes", raw.modes)?;
        let pairs = self.pairs(raw.pages, raw.guest_pages, raw.host_pages)?;
        let settings = settings(&modes, &pairs);
        let baseline = self.baseline(raw.baseline, &settings)?;
        let accesses = match raw.accesses {
            None => ACCESSES,
            Some(accesses) if *accesses.get_ref() == 0 => {
                return Err(self.wrong(accesses.span().start, "accesses = 0: expected at least 1"));
            }
            Some(accesses) => accesses.into_inner(),
        };
        Ok(Sweep {
            file: self.name.to_owned(),
            machines,
            patterns,
            traces,
            working_sets: values(working_sets),
            settings,
            baseline,
            parameters: self.axes(raw.parameters)?,
            accesses,
            warm_up: raw.warm_up.unwrap_or(accesses),
            seed: raw.seed,
        })
    }

    fn baseline(self, typed: Option<Spanned<String>>, settings: &[Typed<Setting>]) -> Result<Setting, SweepError> {
        let Some(typed) = typed else {
            let first = settings.first().map(|first| first.value);
            return first.ok_or_else(|| self.missing("no modes or pages"));
        };
        let at = typed.span().start;
        let setting: Setting = typed.get_ref().parse().map_err(|why| self.wrong(at, why))?;
        let is_there = settings.iter().any(|other| other.value == setting);
        let why = || {
            self.wrong(
                at,
                format!("baseline `{setting}` is none of the modes with the pages above"),
            )
        };
        is_there.then_some(setting).ok_or_else(why)
    }

    /// Pages of guest and host: each with itself, or every pair.
    fn pairs(
        self,
        pages: Option<Texts>,
        guest: Option<Texts>,
        host: Option<Texts>,
    ) -> Result<Vec<Typed<(Bytes, Bytes)>>, SweepError> {
        let (line, has_pages) = (pages.as_ref().map(|pages| pages.span().start), pages.is_some());
        let pages = self.checked("pages", pages, page)?;
        let [guests, hosts] =
            [("guest_pages", guest), ("host_pages", host)].map(|(name, typed)| self.checked(name, typed, page));
        let (guests, hosts) = (guests?, hosts?);
        match (guests.is_empty(), hosts.is_empty()) {
            (true, true) if has_pages => Ok(pages.into_iter().map(both).collect()),
            (true, true) => Ok(USUAL.map(|page| both(Typed { line: 1, value: page })).to_vec()),
            (false, false) if !has_pages => {
                let with = |guest: &Typed<Bytes>| {
                    let (line, guest) = (guest.line, guest.value);
                    hosts.iter().map(move |host| Typed {
                        line: line.max(host.line),
                        value: (guest, host.value),
                    })
                };
                Ok(guests.iter().flat_map(with).collect())
            }
            (false, false) => Err(self.wrong(
                line.unwrap_or_default(),
                "pages stands for the same pages in guest and host: write either pages, or guest_pages and host_pages",
            )),
            _ => {
                Err(self
                    .missing("guest_pages and host_pages go together: each guest page is simulated on each host page"))
            }
        }
    }

    fn names(self, name: &str, typed: Option<Texts>) -> Result<Vec<Typed<String>>, SweepError> {
        self.checked(name, typed, |text| match text.trim().is_empty() {
            true => Err("an empty name".to_owned()),
            false => Ok(text.to_owned()),
        })
    }

    fn parsed<T: FromStr<Err = String> + PartialEq>(
        self,
        name: &str,
        typed: Option<Texts>,
    ) -> Result<Vec<Typed<T>>, SweepError> {
        self.checked(name, typed, str::parse)
    }

    /// The values of an axis with their lines, each once.
    fn checked<T: PartialEq>(
        self,
        name: &str,
        typed: Option<Texts>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<Typed<T>>, SweepError> {
        let mut all: Vec<Typed<T>> = Vec::new();
        for text in self.items(name, typed)? {
            let (at, text) = (text.span().start, text.into_inner());
            let value = parse(&text).map_err(|why| self.wrong(at, format!("{name}: {why}")))?;
            if let Some(before) = all.iter().find(|before| before.value == value) {
                return Err(self.wrong(
                    at,
                    format!("{name}: `{text}` stands there twice (line {})", before.line),
                ));
            }
            all.push(Typed {
                line: self.line(at),
                value,
            });
        }
        Ok(all)
    }
}

/// Pages that are simulated where the file has none: those of x86.
const USUAL: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

fn both(page: Typed<Bytes>) -> Typed<(Bytes, Bytes)> {
    Typed {
        line: page.line,
        value: (page.value, page.value),
    }
}

fn values<T>(all: Vec<Typed<T>>) -> Vec<T> {
    all.into_iter().map(|typed| typed.value).collect()
}
