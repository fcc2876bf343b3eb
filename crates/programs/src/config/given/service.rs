//! A systemd service as its unit file and drop-ins describe it (systemd.exec(5)).

use std::path::Path;

use model::{Bytes, Unread};

use super::bounds::Bounds;
use super::script::{self, Written};
use super::starts::{Start, marks};
use crate::config::unit::{settings, size};
use crate::config::{Setting, Settings, Unit};
use crate::{Kind, jvm};

/// One service: settings of its files, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `postgresql.service`.
    pub name: String,
    /// Where the first of its files is.
    pub path: String,
    pub user: Option<Setting>,
    /// Path and text of each file, drop-ins behind its own.
    pub(super) texts: Vec<(String, String)>,
    /// What its commands write, and what is refused of that.
    pub(super) written: Written,
    pub(super) refused: Vec<Unread>,
    /// Has it CAP_IPC_LOCK, whatever its user is (`AmbientCapabilities=`)?
    pub(super) may_lock: bool,
    /// `CapabilityBoundingSet=`, if it has any.
    pub bounds: Option<Bounds>,
    /// Limits and THP.
    pub unit: Unit,
    /// `Environment=`, a variable each.
    pub environment: Vec<Setting>,
    /// `UnsetEnvironment=`.
    unset: Vec<String>,
    /// `EnvironmentFile=`.
    files: Vec<String>,
    /// `PassEnvironment=`: variables of the manager.
    takes_others: bool,
    /// `ExecStart=`.
    commands: Vec<Setting>,
    /// `MemoryMax=`.
    memory: Option<Setting>,
    /// What binds its memory to nodes.
    binding: Settings,
}

/// The service that a file belongs to: `db.service`, `db.service.d/limits.conf`, or by the path that `systemctl cat` writes above its text.
pub(super) fn name(path: &str, text: &str) -> String {
    let comments = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let is_path = |words: &&str| words.starts_with('/') && !words.contains(' ');
    let written = comments.map(str::trim).filter(is_path);
    let named = [path].into_iter().chain(written).find_map(by_path);
    named.unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default().to_owned())
}

fn by_path(path: &str) -> Option<String> {
    let mut parts = path.rsplit('/');
    let own = parts.next().filter(|own| !own.is_empty())?;
    if own.ends_with(".service") {
        return Some(own.to_owned());
    }
    let name = parts.next()?.strip_suffix(".service.d")?;
    Some(format!("{name}.service"))
}

pub(super) fn is_drop_in(path: &str) -> bool {
    path.ends_with(".conf")
}

/// Lines of a unit by which its programs have directories of another place at a path, or which mounts it waits for.
const MOUNTING: [&str; 4] = ["BindPaths", "BindReadOnlyPaths", "RequiresMountsFor", "WantsMountsFor"];

impl Service {
    /// Is a directory of another place, or a mount to come, at that path or above it?
    pub(super) fn names_mount(&self, path: &str) -> bool {
        let lines = self.texts.iter().flat_map(|(_, text)| text.lines());
        let settings = lines.filter_map(|line| line.split_once('='));
        let named = settings.filter(|(key, _)| MOUNTING.contains(&key.trim()));
        let mut named = named.flat_map(|(_, value)| value.split([' ', ':', '\t']));
        named.any(|own| own.len() > 1 && Path::new(path).starts_with(own))
    }

    pub(super) fn new(name: String) -> Self {
        Self {
            unit: Unit {
                name: name.clone(),
                ..Unit::default()
            },
            name,
            ..Self::default()
        }
    }

    /// What it starts; `given` are files of variables, by their path.
    pub(super) fn starts(&self, given: &[(String, Vec<Setting>)]) -> Vec<Start> {
        let bare = |path: &str| path.trim_start_matches('/').to_owned();
        let is_it = |path: &str, file: &String| bare(path) == bare(file) || path.ends_with(file.as_str());
        let named = |path: &str| self.files.iter().any(|file| is_it(path, file));
        let more = given.iter().filter(|(path, _)| named(path)).flat_map(|(_, set)| set);
        let mut environment = self.environment.clone();
        set_all(&mut environment, more.cloned());
        environment.retain(|set| !is_unset(&self.unset, set));
        let is_given = |file: &String| given.iter().any(|(path, _)| is_it(path, file));
        let all = Variables {
            is_whole: !self.takes_others && self.files.iter().all(is_given),
            set: environment,
        };
        let commands = self.commands.iter();
        commands.flat_map(|command| self.started(command, &all)).collect()
    }

    /// What a command starts: the program, or those of its shell that are known.
    fn started(&self, command: &Setting, all: &Variables) -> Vec<Start> {
        let own = shlex::split(&command.value).unwrap_or_default();
        let marks = own.first().map_or("", |first| marks(first)).to_owned();
        let words: Vec<String> = match marks.contains(':') {
            true => own.iter().map(|word| literal(word)).collect(),
            false => own.iter().flat_map(|word| all.expanded(word)).collect(),
        };
        let mut starts = script::of_shell(&words, &all.set);
        if starts.is_empty() {
            let environment = all.set.clone();
            starts = vec![Start {
                words,
                environment,
                ..Start::default()
            }];
        }
        // systemd binds as numactl does; the marks hold for all of it.
        let binds = self
            .nodes()
            .map(|nodes| ["numactl".to_owned(), format!("--membind={nodes}")]);
        for start in &mut starts {
            start.place.clone_from(&command.place);
            start.text.clone_from(&command.value);
            let memory = self.memory.as_ref();
            start.memory = memory.and_then(|set| Some((Bytes(size(&set.value)?), set.clone())));
            // What its shell sets comes last.
            let own = start.environment.iter_mut().skip(all.set.len());
            own.for_each(|set| set.place.clone_from(&command.place));
            start.words.splice(0..0, binds.iter().flatten().cloned());
            if let Some(first) = start.words.first_mut().filter(|first| self::marks(first).is_empty()) {
                first.insert_str(0, &marks);
            }
        }
        starts
    }

    /// The nodes that its memory has to be on.
    pub(super) fn nodes(&self) -> Option<String> {
        let value = |name: &str| self.binding.last(name).map(|set| set.value.as_str());
        let mask = match value("NUMAPolicy") {
            Some("bind") => value("NUMAMask"),
            _ => value("AllowedMemoryNodes"),
        };
        let parts: Vec<&str> = mask?.split_whitespace().collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Does its name say that it starts a server of this kind? A drop-in alone has no command.
    pub(super) fn is_named_for(&self, kind: Kind) -> bool {
        let names: &[&str] = match kind {
            Kind::Postgres => &["postgres"],
            Kind::Mysql => &["mysql", "mariadb"],
            _ => &[],
        };
        names.iter().any(|name| self.name.starts_with(name))
    }

    pub(super) fn take(&mut self, path: &str, text: &str, bad: &mut Vec<Unread>) {
        if self.path.is_empty() {
            path.clone_into(&mut self.path);
        }
        self.texts.push((path.to_owned(), text.to_owned()));
        self.texts.sort_by_key(|(path, _)| is_drop_in(path));
        for item in settings(path, text) {
            if let Ok((_, setting)) = &item {
                bad.extend(ignored(setting));
            }
            let taken = item
                .and_then(|(section, setting)| self.set(section, &setting).map_err(|wanted| setting.garbled(wanted)));
            bad.extend(taken.err());
        }
        self.environment.retain(|set| !is_unset(&self.unset, set));
    }

    /// What systemd wants in place of what it ignores is the error.
    fn set(&mut self, section: Option<&str>, setting: &Setting) -> Result<(), &'static str> {
        match setting.name.as_str() {
            "User" => self.user = Some(setting.clone()).filter(|user| !user.value.is_empty()),
            "AmbientCapabilities" => {
                let names = setting.value.to_ascii_uppercase();
                let adds = names.starts_with('~') != names.contains("CAP_IPC_LOCK");
                self.may_lock = !setting.value.is_empty() && (self.may_lock || adds);
            }
            "CapabilityBoundingSet" => self.bounds = Some(Bounds::with(self.bounds.as_ref(), setting)),
            // An empty value takes back what was set before.
            "Environment" if setting.value.is_empty() => self.environment.clear(),
            "Environment" => set_all(&mut self.environment, variables(setting)),
            "UnsetEnvironment" if setting.value.is_empty() => self.unset.clear(),
            "UnsetEnvironment" => self.unset.extend(shlex::split(&setting.value).unwrap_or_default()),
            "PassEnvironment" => self.takes_others = !setting.value.is_empty(),
            "EnvironmentFile" if setting.value.is_empty() => self.files.clear(),
            "EnvironmentFile" => self.files.push(setting.value.trim_start_matches('-').to_owned()),
            "ExecStart" if setting.value.is_empty() => self.commands.clear(),
            "ExecStart" => self.commands.push(setting.clone()),
            "MemoryMax" | "MemoryLimit" => self.memory = Some(setting.clone()),
            "NUMAPolicy" | "NUMAMask" | "AllowedMemoryNodes" => self.binding.0.push(setting.clone()),
            _ => return self.unit.take(section, setting),
        }
        Ok(())
    }
}

/// Is it a name of a variable?
pub(super) fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_of_name)
}

/// `Environment=A=1 "B=2 3"`.
pub(in crate::config) fn variables(setting: &Setting) -> Vec<Setting> {
    let words = shlex::split(&setting.value).unwrap_or_default();
    let variable = |word: &String| {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name))?;
        Some(Setting::new(&setting.place, name, value))
    };
    words.iter().filter_map(variable).collect()
}

/// Words of `Environment=` that systemd drops: those behind a blank in a value without quotes.
fn ignored(setting: &Setting) -> Vec<Unread> {
    let words = shlex::split(&setting.value).filter(|_| setting.name == "Environment");
    let is_variable = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    // What a specifier stands for is not known.
    let others = words
        .into_iter()
        .flatten()
        .filter(|word| !is_variable(word) && !word.contains('%'));
    let unread = |word: String| {
        Setting::new(&setting.place, "Environment", word)
            .garbled("`NAME=value`, so systemd ignores it: write quotes around the whole assignment, `\"NAME=a b\"`")
    };
    others.map(unread).collect()
}

/// Sets variables: the last value of a name holds.
fn set_all(environment: &mut Vec<Setting>, new: impl IntoIterator<Item = Setting>) {
    for set in new {
        environment.retain(|known| known.name != set.name);
        environment.push(set);
    }
}

/// By its name, or by name and value.
fn is_unset(unset: &[String], set: &Setting) -> bool {
    let whole = format!("{}={}", set.name, set.value);
    unset.iter().any(|unset| *unset == set.name || *unset == whole)
}

/// A word in which no dollar begins a variable.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The variables of a service's commands.
struct Variables {
    set: Vec<Setting>,
    /// Are there no others? Then one that is not set is empty.
    is_whole: bool,
}

impl Variables {
    fn value(&self, name: &str) -> Option<&str> {
        let own = self.set.iter().find(|set| set.name == name);
        own.map(|set| set.value.as_str()).or(self.is_whole.then_some(""))
    }

    /// A word of a command with the variables in it (systemd.service(5)): `$NAME` alone is split, `${NAME}` is replaced where it is. What is not
    /// known stays, and `$$` stands for any other dollar.
    fn expanded(&self, word: &str) -> Vec<String> {
        if let Some(name) = word.strip_prefix('$').filter(|name| is_name(name)) {
            let words = self.value(name).map(jvm::words_of);
            return words.map_or_else(
                || vec![word.to_owned()],
                |words| words.iter().map(|word| literal(word)).collect(),
            );
        }
        let (mut whole, mut rest) = (String::new(), word);
        while let Some((before, after)) = rest.split_once('$') {
            whole += before;
            let named = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let (text, behind) = match named {
                Some((name, behind)) => (self.value(name).map_or_else(|| format!("${{{name}}}"), literal), behind),
                None => ("$$".to_owned(), after.strip_prefix('$').unwrap_or(after)),
            };
            whole += &text;
            rest = behind;
        }
        whole += rest;
        vec![whole]
    }
}
