//! A systemd service as its unit file and drop-ins describe it (systemd.exec(5)).

use model::Unread;

use crate::config::files::said;
use crate::config::{Setting, Unit, unit};

/// One service: settings of its files, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `postgresql.service`.
    pub name: String,
    /// Where the first of its files is.
    pub path: String,
    /// `User=`.
    pub user: Option<Setting>,
    /// Limits and THP.
    pub unit: Unit,
    /// `Environment=`, a variable each.
    pub environment: Vec<Setting>,
}

/// The service that a file belongs to: `db.service`, `db.service.d/limits.conf`.
pub(super) fn name(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let own = parts.next().unwrap_or_default();
    let drop_in = parts.next().and_then(|directory| directory.strip_suffix(".service.d"));
    drop_in.map_or_else(|| own.to_owned(), |name| format!("{name}.service"))
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

    pub(super) fn take(&mut self, path: &str, text: &str, bad: &mut Vec<Unread>) {
        if self.path.is_empty() {
            path.clone_into(&mut self.path);
        }
        let mut continued = false;
        let mut inside = None;
        for line in said(path, text, &['#', ';']) {
            let rest_of_another = std::mem::replace(&mut continued, line.text.ends_with('\\'));
            if rest_of_another {
                continue;
            }
            if let Some(section) = unit::section(&line) {
                inside = Some(section);
                continue;
            }
            match line.pair().map(|(name, value)| line.setting(name, value)) {
                Some(setting) => {
                    if let Err(wanted) = self.set(inside, &setting) {
                        bad.push(setting.garbled(wanted));
                    }
                }
                None => bad.push(line.garbled("`[Section]` or `Name=value`")),
            }
        }
    }

    /// What systemd wants in place of what it ignores is the error.
    fn set(&mut self, section: Option<&str>, setting: &Setting) -> Result<(), &'static str> {
        match setting.name.as_str() {
            "User" => self.user = Some(setting.clone()).filter(|user| !user.value.is_empty()),
            // An empty value takes back what was set before.
            "Environment" if setting.value.is_empty() => self.environment.clear(),
            "Environment" => self.environment.extend(variables(setting)),
            name => return self.unit.take(section, name, &setting.value, &setting.place),
        }
        Ok(())
    }
}

/// `Environment=A=1 "B=2 3"`.
fn variables(setting: &Setting) -> Vec<Setting> {
    let words = shlex::split(&setting.value).unwrap_or_default();
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        Some(Setting {
            place: setting.place.clone(),
            name: name.to_owned(),
            value: value.to_owned(),
        })
    };
    words.iter().filter_map(variable).collect()
}
