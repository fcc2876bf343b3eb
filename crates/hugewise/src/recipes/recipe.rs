//! A recipe as it stands in `workloads/NAME/recipe.toml`, and what becomes of it with a variant and parameters.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;
use std::thread;

use anyhow::{bail, ensure};
use compare::live::Server;
use compare::{START_TIMEOUT, Task};
use serde::Deserialize;

use super::search::Need;
use crate::helper::User;

/// Words that its texts may name beside parameters and programs. `{arm}` stays: it is of each arm.
const DIR: &str = "dir";
const SCRATCH: &str = "scratch";
const AS_USER: &str = "as_user";
const CPUS: &str = "cpus";
const ARM: &str = "arm";

/// `NAME[:VARIANT][,PARAMETER=VALUE,..]`, as in `oltp:order-entry,clients=4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) name: String,
    pub(super) variant: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
}

/// A recipe. In its texts `{dir}` is the folder that holds its files, `{scratch}` an empty one that goes with the command, `{as_user}`
/// what starts a server without root's rights, `{cpus}` the number of CPUs, `{PARAMETER}` a parameter, and `{PROGRAM}` the path of
/// a program that is searched for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// What it does, in a sentence.
    pub(super) about: String,
    /// What must be said of its numbers.
    pub(super) notice: Option<String>,
    /// Programs that must be there.
    pub(super) needs: Vec<Need>,
    /// Parameters with their usual values.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// Does it refuse to run as root?
    #[serde(default)]
    pub(super) unprivileged: bool,
    /// Commands of the shell that make what it runs.
    #[serde(default)]
    build: Vec<String>,
    /// The program and its arguments.
    command: Vec<String>,
    /// What is judged.
    #[serde(default)]
    metrics: Vec<String>,
    /// How to use the program if it is a server.
    server: Option<Serve>,
    /// What is different in variants.
    #[serde(default)]
    variants: BTreeMap<String, Variant>,
}

/// What replaces the same of a recipe; parameters one by one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Variant {
    about: Option<String>,
    notice: Option<String>,
    needs: Option<Vec<Need>>,
    parameters: BTreeMap<String, String>,
    build: Option<Vec<String>>,
    command: Option<Vec<String>>,
    metrics: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    ready: Option<String>,
    load: String,
    /// Ends well if what the loads left is as it must be.
    check: Option<String>,
    stop: Option<String>,
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
    /// With the variant and the parameters that were chosen.
    pub(super) fn chosen(mut self, selection: &Selection) -> anyhow::Result<Self> {
        if let Some(name) = &selection.variant {
            let Some(variant) = self.variants.remove(name) else {
                let known: Vec<String> = self.variants.into_keys().collect();
                bail!("there is no variant `{name}` (it has {})", list(&known));
            };
            self = self.varied(variant);
        }
        for (name, value) in &selection.parameters {
            let Some(parameter) = self.parameters.get_mut(name) else {
                let known: Vec<String> = self.parameters.into_keys().collect();
                bail!("there is no parameter `{name}` (it has {})", list(&known));
            };
            parameter.clone_from(value);
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

    /// Has it anything to write?
    pub(super) fn writes(&self) -> bool {
        let serve = self.server.iter().flat_map(Serve::lines);
        let mut texts = self.command.iter().chain(&self.metrics).chain(serve);
        texts.any(|text| text.contains("{scratch}"))
    }

    /// The lines that build it, which name parameters alone.
    pub(super) fn build_lines(&self) -> anyhow::Result<Vec<String>> {
        let values = self.values();
        self.build.iter().map(|line| filled(line, &values)).collect()
    }

    /// What is run and judged.
    pub(super) fn task(&self, folder: &Path, scratch: &Path, user: Option<User>) -> anyhow::Result<Task> {
        let mut values = self.values();
        values.insert(DIR.to_owned(), folder.to_string_lossy().into_owned());
        values.insert(SCRATCH.to_owned(), scratch.to_string_lossy().into_owned());
        values.insert(AS_USER.to_owned(), user.map_or_else(String::new, without_rights));
        for need in self.needs.iter().filter(|need| need.is_named()) {
            let path = need.found().unwrap_or_else(|| need.program.clone().into());
            values.insert(need.program.clone(), path.to_string_lossy().into_owned());
        }
        let at = |text: &String| filled(text, &values);
        let asked = self
            .metrics
            .iter()
            .map(|metric| at(metric)?.parse().map_err(anyhow::Error::msg));
        let command = self.command.iter().map(|word| at(word).map(OsString::from));
        Ok(Task {
            command: command.collect::<anyhow::Result<_>>()?,
            asked: asked.collect::<anyhow::Result<_>>()?,
            server: self.server.as_ref().map(|serve| serve.server(&at)).transpose()?,
        })
    }

    /// Its parameters, which may name the number of CPUs.
    fn values(&self) -> BTreeMap<String, String> {
        let cpus = thread::available_parallelism().map_or(1, usize::from).to_string();
        let parameters = self.parameters.iter();
        let filled = parameters.map(|(name, value)| (name.clone(), value.replace("{cpus}", &cpus)));
        filled.chain([(CPUS.to_owned(), cpus.clone())]).collect()
    }
}

impl Serve {
    fn lines(&self) -> impl Iterator<Item = &String> {
        let others = [&self.ready, &self.check, &self.stop].into_iter().flatten();
        others.chain([&self.load])
    }

    fn server(&self, at: &dyn Fn(&String) -> anyhow::Result<String>) -> anyhow::Result<Server> {
        Ok(Server {
            ready: self.ready.as_ref().map(at).transpose()?,
            is_daemon: false,
            patience: START_TIMEOUT,
            warm_up: 1,
            loads: 1,
            load: at(&self.load)?,
            check: self.check.as_ref().map(at).transpose()?,
            stop: self.stop.as_ref().map(at).transpose()?,
        })
    }
}

/// What starts a program as another user; what it allocates for other processes (System V memory) goes with it.
fn without_rights(User { uid, gid }: User) -> String {
    format!("unshare --ipc -- setpriv --reuid={uid} --regid={gid} --clear-groups -- ")
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// A text with values in the place of their names.
fn filled(text: &str, values: &BTreeMap<String, String>) -> anyhow::Result<String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        done += before;
        let name = after.split_once('}').map(|(name, _)| name);
        let is_name =
            |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c));
        match name.filter(is_name) {
            Some(ARM) | None => {
                done.push('{');
                rest = after;
            }
            Some(name) => {
                let Some(value) = values.get(name) else {
                    bail!("`{{{name}}}` in `{text}`: there is no such parameter");
                };
                done += value;
                rest = &after[name.len() + 1..];
            }
        }
    }
    Ok(done + rest)
}
