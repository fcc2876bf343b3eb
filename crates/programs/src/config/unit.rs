//! The limits and the THP setting of a systemd service's unit file (systemd.exec(5)).

use model::{Reading, Unread};

use super::Setting;
use super::files::{Line, content, drop_ins, first, has_configuration, joined, taken};
use crate::Limit;
use host::Source;

/// systemd's own configuration; files of the same name further on are hidden.
const OWN: &str = "/etc/systemd/system.conf";
const OWN_DROP_INS: [&str; 3] = [
    "/etc/systemd/system.conf.d",
    "/run/systemd/system.conf.d",
    "/usr/lib/systemd/system.conf.d",
];

/// Where units are looked for, the strongest first.
pub(super) const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The settings that matter here; the last one that was written holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// `postgresql.service`.
    pub name: String,
    /// `LimitMEMLOCK=`, the soft limit, and where it stands.
    pub memlock: Option<(Limit, String)>,
    /// systemd's own default for services that set none, if that is set.
    pub default_memlock: Option<(Limit, String)>,
    /// `MemoryTHP=`, and where it stands.
    pub thp: Option<(String, String)>,
    /// A `LimitMEMLOCK=` outside of a section that has limits.
    pub outside: Option<Setting>,
    /// A limit in the file of variables of the service's init script, which systemd takes for no limit.
    pub of_init: Option<Setting>,
    /// What systemd ignores of these.
    pub refused: Vec<Unread>,
}

impl Unit {
    /// Takes a setting of a section in, if it is one of those that matter.
    ///
    /// # Errors
    /// What systemd wants in place of what it ignores.
    pub(super) fn take(&mut self, section: Option<&str>, set: &Setting) -> Result<(), &'static str> {
        let name = set.name.as_str();
        let is_ours = matches!(name, "LimitMEMLOCK" | "MemoryTHP");
        if is_ours && !section.is_some_and(|section| SECTIONS.contains(&section)) {
            self.outside = (name == "LimitMEMLOCK").then(|| set.clone()).or(self.outside.take());
            return Err("in a section [Service], so systemd ignores it");
        }
        match name {
            "LimitMEMLOCK" => self.memlock = Some(memlock(set)?),
            "MemoryTHP" => self.thp = Some((set.value.clone(), set.place.clone())),
            _ => {}
        }
        Ok(())
    }

    /// The limit that is set for it, by the name of what sets it: its own, or that of all services.
    pub fn limit(&self) -> Option<(&'static str, &(Limit, String))> {
        let own = self.memlock.as_ref().map(|own| ("LimitMEMLOCK", own));
        own.or_else(|| Some((DEFAULT, self.default_memlock.as_ref()?)))
    }
}

fn memlock(set: &Setting) -> Result<(Limit, String), &'static str> {
    let wanted = "`infinity`, or bytes with K, M, G, T, P or E behind them, so systemd ignores it";
    Ok((limit(&set.value).ok_or(wanted)?, set.place.clone()))
}

/// The limit of services that set none (systemd-system.conf(5)).
const DEFAULT: &str = "DefaultLimitMEMLOCK";

/// Such a limit, of a file of systemd's manager. An empty value leaves it as it was.
///
/// # Errors
/// What systemd wants in place of what it ignores.
pub(super) fn default_limit(section: Option<&str>, set: &Setting) -> Result<Option<(Limit, String)>, &'static str> {
    match set.name.as_str() {
        name if !name.contains("LimitMEMLOCK") || set.value.is_empty() => Ok(None),
        DEFAULT if section != Some("Manager") => Err("in a section [Manager], so systemd ignores it"),
        DEFAULT => memlock(set).map(Some),
        _ => Err(
            "read, as systemd's manager has no such setting: DefaultLimitMEMLOCK= takes `infinity`, bytes, or both limits as SOFT:HARD",
        ),
    }
}

/// Is it a file of systemd's manager, or of the managers of users?
pub fn is_of_manager(path: &str) -> bool {
    let names = ["system.conf", OF_USERS];
    let is_in = |name: &str| path.ends_with(&format!("systemd/{name}")) || path.contains(&format!("{name}.d/"));
    names.iter().any(|name| path == *name || is_in(name))
}

pub(super) const OF_USERS: &str = "user.conf";

/// Those that have limits (systemd.exec(5)).
const SECTIONS: [&str; 4] = ["Service", "Socket", "Mount", "Swap"];

/// A setting with its section, or a line of no known form.
type SettingOrNot<'a> = Result<(Option<&'a str>, Setting), Unread>;

/// The settings of a unit in their order; a value goes on behind a backslash.
pub(super) fn settings<'a>(path: &'a str, text: &'a str) -> Vec<SettingOrNot<'a>> {
    let mut inside = None;
    let setting = |(line, text): (Line<'a>, String)| {
        if let Some(section) = line.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = Some(section);
            return None;
        }
        let set = text
            .split_once('=')
            .map(|(name, value)| (inside, line.setting(name.trim(), value.trim())));
        Some(set.ok_or_else(|| line.garbled("`[Section]` or `Name=value`")))
    };
    let lines = joined(path, text, &['#', ';']);
    lines.into_iter().filter_map(setting).collect()
}

/// The unit of a name and its drop-ins. One without files (made at run time) has no settings.
pub(crate) fn read(source: &Source, name: &str) -> Reading<Unit> {
    read_unit(source, name).into()
}

fn read_unit(source: &Source, name: &str) -> Result<Unit, Unread> {
    has_configuration(source)?;
    let mut unit = Unit {
        name: name.to_owned(),
        ..Unit::default()
    };
    for path in files(source, name)? {
        let text = content(source, &path)?.unwrap_or_default();
        for (section, setting) in settings(&path, &text).into_iter().flatten() {
            // What systemd ignores leaves the setting as it was.
            if let Err(wanted) = unit.take(section, &setting) {
                unit.refused.push(setting.garbled(wanted));
            }
        }
    }
    for (section, setting) in of_manager(source)? {
        match default_limit(section.as_deref(), &setting) {
            Ok(limit) => unit.default_memlock = limit.or(unit.default_memlock.take()),
            Err(wanted) => unit.refused.push(setting.garbled(wanted)),
        }
    }
    unit.of_init = of_init(source, name)?;
    Ok(unit)
}

/// Directories of the variables of init scripts: Debian's, and those of RHEL and SUSE.
pub(crate) const VARIABLES: [&str; 2] = ["/etc/default", "/etc/sysconfig"];

/// A limit of locked memory for an init script, which passes it to `ulimit -l`: MAX_LOCKED_MEMORY (Elasticsearch), MEMLOCK (Varnish).
pub(crate) fn limit_of_init<'a>(line: &Line<'a>) -> Option<(&'a str, &'a str)> {
    if let Some(limit) = line.text.strip_prefix("ulimit -l ") {
        return Some(("ulimit -l", limit));
    }
    let (name, value) = line.pair()?;
    let name = name.trim_start_matches("export ").trim();
    let is_limit = name.contains("MEMLOCK") || name.contains("LOCKED_MEMORY");
    is_limit.then_some((name, value.trim_matches('"')))
}

fn of_init(source: &Source, name: &str) -> Result<Option<Setting>, Unread> {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let paths = VARIABLES.map(|directory| format!("{directory}/{stem}"));
    let lines = taken(source, paths, &['#'], |line| {
        let (name, value) = limit_of_init(line)?;
        Some(line.setting(name, value))
    })?;
    Ok(lines.into_iter().next_back())
}

/// The settings of systemd's own files, with their sections.
fn of_manager(source: &Source) -> Result<Vec<(Option<String>, Setting)>, Unread> {
    let mut own = drop_ins(source, &OWN_DROP_INS)?;
    own.sort();
    let mut all = Vec::new();
    for path in [OWN.to_owned()]
        .into_iter()
        .chain(own.into_iter().map(|(_, path)| path))
    {
        let text = content(source, &path)?.unwrap_or_default();
        let settings = settings(&path, &text).into_iter().flatten();
        all.extend(settings.map(|(section, set)| (section.map(str::to_owned), set)));
    }
    Ok(all)
}

/// The unit's own file, then its drop-ins by name. `a@b.service` is of the template `a@.service`.
pub(super) fn files(source: &Source, name: &str) -> Result<Vec<String>, Unread> {
    let template = name.split_once('@').map(|(first, _)| format!("{first}@.service"));
    let names = [Some(name), template.as_deref()].into_iter().flatten();
    let paths: Vec<String> = DIRECTORIES
        .into_iter()
        .flat_map(|directory| names.clone().map(move |name| format!("{directory}/{name}")))
        .collect();
    let own = first(source, paths.clone())?;
    let mut files: Vec<String> = own.into_iter().map(|(path, _)| path).collect();
    let directories: Vec<String> = paths.iter().map(|path| format!("{path}.d")).collect();
    let mut drop_ins = drop_ins(source, &directories)?;
    drop_ins.sort();
    files.extend(drop_ins.into_iter().map(|(_, path)| path));
    Ok(files)
}

/// `infinity`, or a size; `soft:hard` has two, of which the first may not be above the second (rlimit_parse()).
fn limit(value: &str) -> Option<Limit> {
    let one = |text: &str| match text {
        "infinity" => Some(Limit::Unlimited),
        _ => size(text).map(Limit::Bytes),
    };
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let (soft, hard) = (one(soft)?, one(hard)?);
    (soft <= hard).then_some(soft)
}

/// systemd's parse_size() with the base 1024: numbers with a fraction, each with one of its letters, ever smaller ones: `1G 512M`.
pub(super) fn size(text: &str) -> Option<u64> {
    const UNITS: [&str; 8] = ["E", "P", "T", "G", "M", "K", "B", ""];
    let (mut sum, mut rest, mut from) = (0u64, text.trim(), 0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let at = UNITS[from..]
            .iter()
            .position(|unit| after.starts_with(unit))
            .map(|at| at + from)?;
        let shift = 60_usize.saturating_sub(at * 10);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let whole: u64 = whole.parse().ok()?;
        let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
        let part = whole.checked_mul(1 << shift)?;
        sum = sum
            .checked_add(part)?
            .checked_add((fraction * (1u64 << shift) as f64) as u64)?;
        rest = after[UNITS[at].len()..].trim_start();
        from = at + 1;
    }
    Some(sum)
}
