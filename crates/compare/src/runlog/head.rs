//! The first line of a log: what its runs were made with, and whether more runs belong to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use host::Input;
use model::compare::Method;
use serde::{Deserialize, Serialize};

use crate::request::{ALPHA, Request};

/// Before the second one no looks were kept, and before the fourth not all that runs are made with.
const SCHEMA: &str = "hugewise/compare-runs/4";

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    schema: String,
    pub(super) seed: u64,
    pub(super) program: Vec<String>,
    pub(super) arms: Vec<String>,
    /// What is judged, in its order: one metric more is one question more.
    #[serde(default)]
    metrics: Vec<String>,
    /// What all looks may spend together.
    #[serde(default)]
    alpha: f64,
    #[serde(default)]
    pub(super) design: Method,
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
        files: &[(String, PathBuf)],
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
            made_with: made_with(request, files),
        }
    }

    pub(super) fn read(line: Option<&str>) -> Result<Self, String> {
        let head = serde_json::from_str(line.unwrap_or_default());
        head.map_err(|error| format!("its first line is not that of a comparison: {error}"))
    }

    /// Other arms, metrics or another error would be another question, asked of the same runs.
    pub(super) fn must_match(&self, wanted: &Self) -> Result<(), String> {
        if self.schema != wanted.schema {
            return Err(format!(
                "it was written by another version ({}, expected {SCHEMA}), which records other things of its runs: begin anew with --log",
                self.schema
            ));
        }
        if (&self.program, &self.arms) != (&wanted.program, &wanted.arms) {
            return Err(format!(
                "it is of `{}` with the arms {}: write the same arms and program",
                self.program.join(" "),
                self.arms.join(",")
            ));
        }
        if self.design != wanted.design {
            return Err(format!(
                "it is of {}: write the same --design and metrics",
                self.design.title()
            ));
        }
        if self.metrics != wanted.metrics || (self.alpha - wanted.alpha).abs() > f64::EPSILON {
            return Err(format!(
                "it judges {}: write the same --metric",
                self.metrics.join(", ")
            ));
        }
        match differences(&self.made_with, &wanted.made_with) {
            differs if differs.is_empty() => Ok(()),
            differs => Err(format!(
                "its runs were made otherwise ({differs}): write the same, or begin anew with --log"
            )),
        }
    }
}

/// The key of the program's file, which is no option.
pub(crate) const BUILD: &str = "the program's file";
/// How the keys of files of arms begin.
pub(crate) const FILE_OF: &str = "the file of ";

/// Everything that changes what a run is or is worth, as it was typed; of the files of programs their bytes count.
fn made_with(request: &Request, files: &[(String, PathBuf)]) -> BTreeMap<String, String> {
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
    for (what, file) in files {
        add(what, bytes_of(file));
    }
    add("--slice", request.slice.map(|slice| format!("{slice:?}")));
    add("--threads", Some(request.threads.to_string()));
    add("--range", Some(format!("{:?}", request.range)));
    add("--warm-up", Some(request.warm_up.to_string()));
    add("--order", Some(format!("{:?}", request.order)));
    add("--least-coverage", Some(request.least_coverage.to_string()));
    add("--ignore-failure", Some(request.ignore_failure.to_string()));
    all
}

/// A program's file, by what is in it.
fn bytes_of(file: &Path) -> Option<String> {
    let bytes = Input::Program.read(file).ok()?;
    Some(format!("{}, {} bytes, {}", file.display(), bytes.len(), hash(&bytes)))
}

/// FNV-1a of 64 bits: it distinguishes builds, and does not keep an attacker from making two alike.
fn hash(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

fn is_file(option: &str) -> bool {
    option == BUILD || option.starts_with(FILE_OF)
}

/// What differs, with both values; of a program's file that it is another.
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
            file if is_file(file) => format!("{file} has changed since: {} was {}", value(now), value(before)),
            "--arms-file" => "--arms-file has other contents".to_owned(),
            _ => format!("{option}: {}, now {}", value(before), value(now)),
        }
    });
    said.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{BUILD, FILE_OF, Head, SCHEMA};

    fn made_with(values: &[(&str, &str)]) -> Head {
        let values = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Head {
            schema: SCHEMA.to_owned(),
            made_with: values.collect(),
            ..Head::default()
        }
    }

    #[test]
    fn a_log_of_another_version_build_or_option_is_refused_with_the_difference() {
        let arm = format!("{FILE_OF}small");
        let asked = [(arm.as_str(), "/opt/b, 9 bytes"), (BUILD, "/opt/a, 9 bytes")];
        let now = made_with(&asked);
        assert_eq!(now.must_match(&now), Ok(()));
        let refused = |log: Head, expected: [&str; 2]| {
            let why = log.must_match(&now).expect_err("another one");
            assert!(expected.iter().all(|part| why.contains(part)), "{why}");
        };
        let old = Head {
            schema: "hugewise/compare-runs/3".to_owned(),
            ..made_with(&asked)
        };
        refused(old, ["another version", "begin anew with --log"]);
        let other = made_with(&[(arm.as_str(), "/opt/b, 8 bytes"), asked[1]]);
        refused(
            other,
            [
                "the file of small has changed since: `/opt/b, 9 bytes` was `/opt/b, 8 bytes`",
                "write the same",
            ],
        );
        let typed = made_with(&[asked[0], asked[1], ("--slice", "1s")]);
        refused(typed, ["--slice: `1s`, now not there", "write the same"]);
    }
}
