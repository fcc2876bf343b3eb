//! sysctl settings on disk, in the order in which systemd-sysctl applies them (sysctl.d(5)).

use std::collections::BTreeMap;

use model::Unread;

use super::{Setting, Settings, content, has_configuration, listed, said};
use crate::Source;

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

pub(super) fn read(source: &Source) -> Result<Settings, Unread> {
    has_configuration(source)?;
    let mut settings = Settings::default();
    for path in files(source)? {
        if let Some(text) = content(source, &path)? {
            settings.extend(said(&text, &['#', ';']).filter_map(|(number, line)| setting(&path, number, line)));
        }
    }
    Ok(settings)
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
pub(super) fn setting(path: &str, number: usize, line: &str) -> Option<Setting> {
    let (name, value) = line.split_once('=')?;
    Some(Setting {
        place: format!("{path}:{number}"),
        name: name.trim().trim_start_matches('-').replace('/', "."),
        value: value.trim().to_owned(),
    })
}
