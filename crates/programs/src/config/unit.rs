//! The limits and the THP setting of a systemd service's unit file (systemd.exec(5)).

use model::{Reading, Unread};

use super::files::{content, drop_ins, has_configuration, said};
use crate::Limit;
use host::Source;

/// Where units are looked for, the strongest first.
const DIRECTORIES: [&str; 4] = [
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
    /// `MemoryTHP=`, and where it stands.
    pub thp: Option<(String, String)>,
}

impl Unit {
    /// Takes a setting in, if it is one of those that matter; false if its value does not have its form.
    pub(super) fn take(&mut self, name: &str, value: &str, place: &str) -> bool {
        match name {
            "LimitMEMLOCK" => self.memlock = limit(value).map(|limit| (limit, place.to_owned())),
            "MemoryTHP" => self.thp = Some((value.to_owned(), place.to_owned())),
            _ => {}
        }
        name != "LimitMEMLOCK" || self.memlock.is_some() || value.is_empty()
    }
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
        for line in said(&path, &text, &['#', ';']) {
            if let Some((key, value)) = line.pair() {
                unit.take(key, value, &line.place());
            }
        }
    }
    Ok(unit)
}

/// The unit's own file, then its drop-ins by name. `a@b.service` is of the template `a@.service`.
fn files(source: &Source, name: &str) -> Result<Vec<String>, Unread> {
    let template = name.split_once('@').map(|(first, _)| format!("{first}@.service"));
    let names = [Some(name), template.as_deref()].into_iter().flatten();
    let paths: Vec<String> = DIRECTORIES
        .into_iter()
        .flat_map(|directory| names.clone().map(move |name| format!("{directory}/{name}")))
        .collect();
    let mut files = Vec::new();
    for path in &paths {
        if content(source, path)?.is_some() {
            files.push(path.clone());
            break;
        }
    }
    let directories: Vec<String> = paths.iter().map(|path| format!("{path}.d")).collect();
    let mut drop_ins = drop_ins(source, &directories)?;
    drop_ins.sort();
    files.extend(drop_ins.into_iter().map(|(_, path)| path));
    Ok(files)
}

/// `infinity`, or a number with an optional unit; `soft:hard` has two.
fn limit(value: &str) -> Option<Limit> {
    let soft = value.split(':').next().unwrap_or(value);
    match soft {
        "infinity" => Some(Limit::Unlimited),
        _ => super::boot::memparse(soft).map(|bytes| Limit::Bytes(bytes.0)),
    }
}
