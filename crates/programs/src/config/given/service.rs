//! A systemd service as its unit file and drop-ins describe it (systemd.exec(5)).

use std::collections::BTreeSet;

use model::Unread;

use super::bounds::Bounds;
use super::starts::{Start, marks};
use crate::config::files::said;
use crate::config::unit::settings;
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
    /// `ExecStart=`.
    commands: Vec<Setting>,
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

impl Service {
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
        let named = |path: &str| {
            self.files
                .iter()
                .any(|file| bare(path) == bare(file) || path.ends_with(file.as_str()))
        };
        let more = given.iter().filter(|(path, _)| named(path)).flat_map(|(_, set)| set);
        let mut environment = self.environment.clone();
        set_all(&mut environment, more.cloned());
        environment.retain(|set| !is_unset(&self.unset, set));
        let nodes = self.nodes();
        let commands = self.commands.iter().map(|command| {
            let own = shlex::split(&command.value).unwrap_or_default();
            let own: Vec<String> = own.iter().flat_map(|word| expanded(word, &environment)).collect();
            // systemd binds as numactl does; the marks hold for all of it.
            let binds = nodes.as_ref().map(|nodes| {
                let marks = own.first().map_or("", |first| marks(first));
                [format!("{marks}numactl"), format!("--membind={nodes}")]
            });
            Start {
                place: command.place.clone(),
                words: binds.into_iter().flatten().chain(own).collect(),
                environment: environment.clone(),
            }
        });
        commands.collect()
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
            "EnvironmentFile" if setting.value.is_empty() => self.files.clear(),
            "EnvironmentFile" => self.files.push(setting.value.trim_start_matches('-').to_owned()),
            "ExecStart" if setting.value.is_empty() => self.commands.clear(),
            "ExecStart" => self.commands.push(setting.clone()),
            "NUMAPolicy" | "NUMAMask" | "AllowedMemoryNodes" => self.binding.0.push(setting.clone()),
            _ => return self.unit.take(section, setting),
        }
        Ok(())
    }
}

/// A file of variables, a line each (systemd.exec(5), EnvironmentFile=).
pub(super) fn environment(path: &str, text: &str) -> Vec<Setting> {
    let mut set: Vec<Setting> = Vec::new();
    // A value goes on behind a backslash, and up to the end of its quotes.
    let mut is_open = false;
    for line in said(path, text, &['#', ';']) {
        let text = line.text.strip_suffix('\\').unwrap_or(line.text);
        let begun = set.last_mut().filter(|_| is_open);
        if let Some(setting) = begun {
            setting.value += &format!(" {text}");
        } else if let Some((name, value)) = assignment(text) {
            set.push(line.setting(name, value));
        } else {
            continue;
        }
        let value = set.last().map_or("", |setting| setting.value.as_str());
        is_open = text.len() < line.text.len() || (value.starts_with(['"', '\'']) && shlex::split(value).is_none());
    }
    for setting in &mut set {
        let adds = setting.name.strip_suffix('+').map(str::to_owned);
        // What follows a quoted value is another command: `; export NAME`.
        let words = shlex::split(&setting.value).unwrap_or_default();
        let is_quoted = words.len() == 1 || setting.value.starts_with(['"', '\'']);
        if let Some(first) = words.first().filter(|_| is_quoted) {
            first.trim_end_matches(';').clone_into(&mut setting.value);
        }
        if let Some(name) = adds {
            setting.value = format!("${name} {}", setting.value);
            setting.name = name;
        }
    }
    without_replaced(set)
}

/// A later value replaces one of that name, unless it has it in itself.
fn without_replaced(set: Vec<Setting>) -> Vec<Setting> {
    let mut replaced: BTreeSet<String> = BTreeSet::new();
    let mut kept = Vec::new();
    for one in set.into_iter().rev() {
        let is_last = !replaced.contains(&one.name);
        let own = [format!("${}", one.name), format!("${{{}", one.name)];
        if !own.iter().any(|own| one.value.contains(own)) {
            replaced.insert(one.name.clone());
        }
        kept.extend(Some(one).filter(|_| is_last));
    }
    kept.reverse();
    kept
}

/// `export NAME=value`, `NAME+=value`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.strip_prefix("export ").unwrap_or(text).split_once('=')?;
    let name = name.trim();
    is_name(name.strip_suffix('+').unwrap_or(name)).then_some((name, value.trim()))
}

/// Is it a name of a variable?
fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_of_name)
}

/// `Environment=A=1 "B=2 3"`.
fn variables(setting: &Setting) -> Vec<Setting> {
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

/// A word of a command with the variables in it (systemd.service(5)): `$NAME` alone is split, `${NAME}` is replaced where it is. What is not
/// known stays, and `$$` stands for any other dollar.
fn expanded(word: &str, environment: &[Setting]) -> Vec<String> {
    let value = |name: &str| environment.iter().find(|set| set.name == name).map(|set| &set.value);
    let literal = |text: &str| text.replace("$$", "$").replace('$', "$$");
    if let Some(name) = word.strip_prefix('$').filter(|name| is_name(name)) {
        let words = value(name).map(|value| jvm::words_of(value));
        return words.map_or_else(
            || vec![word.to_owned()],
            |words| words.iter().map(|word| literal(word)).collect(),
        );
    }
    let mut parts = word.split("${");
    let mut whole = literal(parts.next().unwrap_or_default());
    for part in parts {
        let known = part
            .split_once('}')
            .and_then(|(name, after)| Some((value(name)?, after)));
        whole += &match known {
            Some((value, after)) => literal(value) + &literal(after),
            None => format!("${{{part}"),
        };
    }
    vec![whole]
}
