//! sysctl settings on disk, in the order in which systemd-sysctl applies them (sysctl.d(5)).

use std::collections::BTreeMap;

use model::Unread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{content, has_configuration, listed, said};
use crate::Source;
use crate::parse;

/// Directories, the strongest first: a file hides one of the same name in a later directory.
const DIRECTORIES: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// Read by procps's `sysctl --system` after all others; Debian links it as `sysctl.d/99-sysctl.conf`.
const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Every setting, in the order in which they are applied: the last one of a name holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SysctlFiles(Vec<SysctlLine>);

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SysctlLine {
    /// `FILE:LINE`.
    pub place: String,
    /// Name with dots, such as `vm.nr_hugepages`.
    pub name: String,
    /// Value as written.
    pub value: String,
}

impl SysctlFiles {
    pub(super) fn read(source: &Source) -> Result<Self, Unread> {
        has_configuration(source)?;
        let mut lines = Vec::new();
        for path in files(source)? {
            if let Some(text) = content(source, &path)? {
                lines.extend(said(&text, &['#', ';']).filter_map(|(number, line)| setting(&path, number, line)));
            }
        }
        Ok(Self(lines))
    }

    /// The setting that holds in the end.
    pub fn last(&self, name: &str) -> Option<&SysctlLine> {
        self.0.iter().rev().find(|line| line.name == name)
    }

    /// The setting that holds in the end, as a number.
    ///
    /// # Errors
    /// Garbled if it is none.
    pub fn number(&self, name: &str) -> Result<Option<(u64, &SysctlLine)>, Unread> {
        let Some(line) = self.last(name) else { return Ok(None) };
        let (path, index) = line.place.rsplit_once(':').unwrap_or((&line.place, "1"));
        let index = index.parse::<usize>().unwrap_or(1).saturating_sub(1);
        parse::value(path, index, name, "a whole number", &line.value).map(|number| Some((number, line)))
    }

    /// Every setting of a name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a SysctlLine> {
        self.0.iter().filter(move |line| line.name == name)
    }
}

/// The files in the order of application: by name, whatever the directory.
fn files(source: &Source) -> Result<Vec<String>, Unread> {
    let mut by_name = BTreeMap::new();
    for directory in DIRECTORIES {
        for name in listed(source, directory)?
            .into_iter()
            .filter(|name| name.ends_with(".conf"))
        {
            by_name.entry(name).or_insert(directory);
        }
    }
    let linked = |path: &String| {
        source
            .link(path)
            .known()
            .is_some_and(|target| target.ends_with("/sysctl.conf"))
    };
    let mut files: Vec<String> = by_name
        .iter()
        .map(|(name, directory)| format!("{directory}/{name}"))
        .collect();
    if !files.iter().any(linked) {
        files.push(SYSCTL_CONF.to_owned());
    }
    Ok(files)
}

/// `name = value`; a `-` before the name lets errors pass; slashes in names are dots.
fn setting(path: &str, number: usize, line: &str) -> Option<SysctlLine> {
    let (name, value) = line.split_once('=')?;
    Some(SysctlLine {
        place: format!("{path}:{number}"),
        name: name.trim().trim_start_matches('-').replace('/', "."),
        value: value.trim().to_owned(),
    })
}
