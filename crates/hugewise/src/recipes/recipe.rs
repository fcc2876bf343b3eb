//! A recipe as it stands in `workloads/NAME/recipe.toml`, and what becomes of it with a variant and parameters.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure};
use compare::live::{LOADS, Server};
use compare::metric::Asked;
use compare::{START_TIMEOUT, Task};
use process::rights::ShutIn;
use serde::Deserialize;
use toml::Spanned;
use translation::toml_file::{FileError, TomlFile};

use super::search::Need;
use crate::cli::values;

/// Words that its texts may name beside parameters and programs. `{arm}` stays: it is of each arm.
const DIR: &str = "dir";
const SCRATCH: &str = "scratch";
const CPUS: &str = "cpus";
const ARM: &str = "arm";
const RESERVED: [&str; 4] = [DIR, SCRATCH, CPUS, ARM];
/// Most recipes compile one small file, or fetch an archive of some MB; a busy machine may take seconds for it.
const BUILD_TIME: Duration = Duration::from_secs(120);

/// `NAME[:VARIANT][,PARAMETER=VALUE,..]`, as in `oltp:order-entry,clients=4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) name: String,
    pub(super) variant: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
}

/// A text of a recipe's file, whose line an error names.
type Text = Spanned<String>;

/// A recipe. In its texts `{dir}` is the folder that holds its files, `{scratch}` an empty one that goes with the command, `{cpus}` the
/// number of CPUs, `{PARAMETER}` a parameter, and `{PROGRAM}` the path of a program that is searched for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    #[serde(skip)]
    file: Rc<File>,
    /// What it does, in a sentence.
    pub(super) about: String,
    /// What must be said of its numbers.
    pub(super) notice: Option<String>,
    /// Programs that must be there.
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    /// Parameters with their usual values.
    #[serde(default)]
    parameters: BTreeMap<String, Text>,
    /// Does it refuse to run as root? Then root runs all of it as a user of its own.
    #[serde(default)]
    pub(super) unprivileged: bool,
    /// Commands of the shell that make what it runs.
    #[serde(default)]
    build: Vec<Text>,
    /// What one of them may take, if not the usual time.
    build_time: Option<Text>,
    /// The program and its arguments.
    command: Spanned<Vec<Text>>,
    #[serde(default)]
    metrics: Vec<Text>,
    /// How to use the program if it is a server.
    server: Option<Serve>,
    #[serde(default)]
    variants: BTreeMap<String, Variant>,
}

#[derive(Debug, Default)]
struct File {
    name: String,
    text: String,
}

/// What replaces the same of a recipe; parameters one by one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Variant {
    about: Option<String>,
    notice: Option<String>,
    needs: Option<Vec<Need>>,
    parameters: BTreeMap<String, Text>,
    build: Option<Vec<Text>>,
    command: Option<Spanned<Vec<Text>>>,
    metrics: Option<Vec<Text>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    ready: Option<Text>,
    load: Text,
    /// Ends well if what the loads left is as it must be.
    check: Option<Text>,
    stop: Option<Text>,
}

impl FromStr for Selection {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut selection = Self {
            name: name.to_owned(),
            variant: None,
            parameters: BTreeMap::new(),
        };
        for (at, part) in rest.split(',').filter(|part| !part.is_empty()).enumerate() {
            match part.split_once('=') {
                Some((key, value)) => {
                    // Values come into lines of the shell.
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
                    ensure!(
                        !value.is_empty() && !value.starts_with('-') && value.chars().all(is_plain),
                        "`{part}`: a value has letters, digits and . _ / + - only"
                    );
                    selection.parameters.insert(key.to_owned(), value.to_owned());
                }
                None if at == 0 => selection.variant = Some(part.to_owned()),
                None => bail!("`{part}`, expected PARAMETER=VALUE"),
            }
        }
        Ok(selection)
    }
}

impl Selection {
    /// A name for its folder: variants are built from different lines.
    pub(super) fn place(&self) -> String {
        match &self.variant {
            None => self.name.clone(),
            Some(variant) => format!("{}-{variant}", self.name),
        }
    }
}

impl Recipe {
    /// The text of a recipe, which errors call `name`.
    ///
    /// # Errors
    /// With the line, if anything in it or in one of its variants cannot be.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        let file = File {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let mut recipe: Self = file.typed().read()?;
        recipe.file = Rc::new(file);
        recipe.check()?;
        for variant in recipe.variants.values() {
            recipe.clone().varied(variant.clone()).check()?;
        }
        Ok(recipe)
    }

    fn check(&self) -> Result<(), FileError> {
        for (name, value) in &self.parameters {
            if !is_name(name) || RESERVED.contains(&name.as_str()) {
                let reserved = RESERVED.join(", ");
                let expected = format!("expected a-z, _ and -, and none of {reserved}");
                return self.fail(value, format!("`{name}` cannot be the name of a parameter: {expected}"));
            }
        }
        if self.command.get_ref().is_empty() {
            return self.fail(&self.command, "expected the program and its arguments".to_owned());
        }
        self.build_lines()?;
        self.build_time()?;
        self.task(Path::new(""), Path::new(""), None).map(drop)
    }

    fn fail<T, V>(&self, at: &Spanned<V>, what: String) -> Result<T, FileError> {
        self.file.typed().fail(at, what)
    }

    /// With the variant and the parameters that were chosen.
    pub(super) fn chosen(mut self, selection: &Selection) -> anyhow::Result<Self> {
        if let Some(name) = &selection.variant {
            let Some(variant) = self.variants.remove(name) else {
                bail!("there is no variant `{name}` (it has {})", names(&self.variants));
            };
            self = self.varied(variant);
        }
        for (name, value) in &selection.parameters {
            let Some(parameter) = self.parameters.get_mut(name) else {
                bail!("there is no parameter `{name}` (it has {})", names(&self.parameters));
            };
            parameter.get_mut().clone_from(value);
        }
        Ok(self)
    }

    fn varied(mut self, variant: Variant) -> Self {
        self.parameters.extend(variant.parameters);
        Self {
            about: variant.about.unwrap_or(self.about),
            notice: variant.notice.or(self.notice),
            needs: variant.needs.unwrap_or(self.needs),
            build: variant.build.unwrap_or(self.build),
            command: variant.command.unwrap_or(self.command),
            metrics: variant.metrics.unwrap_or(self.metrics),
            ..self
        }
    }

    pub(super) fn writes(&self) -> bool {
        let serve = self.server.iter().flat_map(Serve::lines);
        let mut texts = self.command.get_ref().iter().chain(&self.metrics).chain(serve);
        texts.any(|text| text.get_ref().contains("{scratch}"))
    }

    /// The lines that build it, which name parameters alone.
    pub(super) fn build_lines(&self) -> Result<Vec<String>, FileError> {
        let values = self.values();
        let file = self.file.typed();
        self.build.iter().map(|line| filled(file, line, &values)).collect()
    }

    /// How long each of them may take.
    pub(super) fn build_time(&self) -> Result<Duration, FileError> {
        let Some(time) = &self.build_time else {
            return Ok(BUILD_TIME);
        };
        values::duration(time.get_ref()).or_else(|why| self.fail(time, why))
    }

    /// What is run and judged.
    pub(super) fn task(&self, folder: &Path, scratch: &Path, shut_in: Option<&Arc<ShutIn>>) -> Result<Task, FileError> {
        let mut values = self.values();
        values.insert(DIR.to_owned(), folder.to_string_lossy().into_owned());
        values.insert(SCRATCH.to_owned(), scratch.to_string_lossy().into_owned());
        for need in self.needs.iter().filter(|need| need.is_named()) {
            let path = need.found().unwrap_or_else(|| need.program.clone().into());
            values.insert(need.program.clone(), path.to_string_lossy().into_owned());
        }
        let at = |text: &Text| filled(self.file.typed(), text, &values);
        let asked = |metric: &Text| {
            let asked = at(metric)?.parse::<Asked>().or_else(|why| self.fail(metric, why))?;
            let shut_in = shut_in.cloned();
            Ok(Asked { shut_in, ..asked })
        };
        let command = self.command.get_ref().iter().map(|word| at(word).map(OsString::from));
        Ok(Task {
            command: command.collect::<Result<_, _>>()?,
            asked: self.metrics.iter().map(asked).collect::<Result<_, _>>()?,
            server: self.server.as_ref().map(|serve| serve.server(&at)).transpose()?,
            shut_in: shut_in.cloned(),
        })
    }

    /// Its parameters, which may name the number of CPUs.
    fn values(&self) -> BTreeMap<String, String> {
        let cpus = thread::available_parallelism().map_or(1, usize::from).to_string();
        let parameters = self.parameters.iter();
        let filled = parameters.map(|(name, value)| (name.clone(), value.get_ref().replace("{cpus}", &cpus)));
        filled.chain([(CPUS.to_owned(), cpus.clone())]).collect()
    }
}

impl File {
    fn typed(&self) -> TomlFile<'_> {
        TomlFile {
            name: &self.name,
            text: &self.text,
        }
    }
}

impl Serve {
    fn lines(&self) -> impl Iterator<Item = &Text> {
        let others = [&self.ready, &self.check, &self.stop].into_iter().flatten();
        others.chain([&self.load])
    }

    fn server(&self, at: &dyn Fn(&Text) -> Result<String, FileError>) -> Result<Server, FileError> {
        Ok(Server {
            ready: self.ready.as_ref().map(at).transpose()?,
            is_daemon: false,
            patience: START_TIMEOUT,
            warm_up: LOADS.warm_up,
            loads: LOADS.counted,
            load: at(&self.load)?,
            check: self.check.as_ref().map(at).transpose()?,
            stop: self.stop.as_ref().map(at).transpose()?,
        })
    }
}

/// The names in a table, for a message.
pub(super) fn names<T>(table: &BTreeMap<String, T>) -> String {
    match table.is_empty() {
        true => "none".to_owned(),
        false => draw::joined(table.keys(), ", "),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c))
}

/// A text of a file with values in the place of their names.
///
/// # Errors
/// Says which name has no value, and which have one.
pub(super) fn filled(
    file: TomlFile<'_>,
    at: &Spanned<String>,
    values: &BTreeMap<String, String>,
) -> Result<String, FileError> {
    let mut done = String::new();
    let mut rest = at.get_ref().as_str();
    while let Some((before, after)) = rest.split_once('{') {
        done += before;
        let name = after.split_once('}').map(|(name, _)| name);
        match name.filter(|name| is_name(name)) {
            Some(ARM) | None => {
                done.push('{');
                rest = after;
            }
            Some(name) => {
                let Some(value) = values.get(name) else {
                    let known = names(values);
                    return file.fail(at, format!("there is no `{{{name}}}` here: expected one of {known}"));
                };
                done += value;
                rest = &after[name.len() + 1..];
            }
        }
    }
    Ok(done + rest)
}
