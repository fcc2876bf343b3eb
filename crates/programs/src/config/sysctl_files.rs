//! sysctl settings on disk, in the order in which systemd-sysctl applies them (sysctl.d(5)).

use model::Unread;

use super::files::{Line, drop_ins, has_configuration, taken};
use super::kernel_number;
use super::{Setting, Settings};
use host::Source;

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
    taken(source, files(source)?, &['#', ';'], setting).map(Settings)
}

/// The files in the order of application: by name, whatever the directory.
fn files(source: &Source) -> Result<Vec<String>, Unread> {
    let mut by_name = drop_ins(source, &DIRECTORIES)?;
    by_name.sort();
    let linked = |path: &String| {
        source
            .link(path)
            .known()
            .is_some_and(|target| target.ends_with("/sysctl.conf"))
    };
    let mut files: Vec<String> = by_name.into_iter().map(|(_, path)| path).collect();
    if !files.iter().any(linked) {
        files.push(SYSCTL_CONF.to_owned());
    }
    Ok(files)
}

/// `name = value`; a `-` before the name lets errors pass; slashes in names are dots. A number is as the kernel takes it, whatever
/// stands behind it; one that it refuses stays as written.
pub(super) fn setting(line: &Line<'_>) -> Option<Setting> {
    let (name, value) = line.pair()?;
    let name = name.trim_start_matches('-').trim_start().replace('/', ".");
    let taken = kernel_number::is_number(&name)
        .then(|| kernel_number::taken(value).ok())
        .flatten();
    let value = taken.map_or_else(|| value.to_owned(), |number| number.to_string());
    Some(line.setting(name, value))
}

/// Why the kernel does not take the setting, if it does not.
pub(super) fn refused(setting: &Setting) -> Option<Unread> {
    let is_refused = kernel_number::is_number(&setting.name) && kernel_number::taken(&setting.value).is_err();
    is_refused.then(|| setting.garbled("a number that the kernel takes (digits alone), so the setting stays as it was"))
}
