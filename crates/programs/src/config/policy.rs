//! Everything that sets the THP policy at boot: several of these on one machine may disagree.

use model::Unread;

use super::files::{Line, drop_ins, has_configuration, listed, said, taken};
use super::{Boot, BootLine};
use host::Source;

const ENABLED: &str = "transparent_hugepage/enabled";
/// Of units and profiles.
const COMMENT: &[char] = &['#', ';'];
const TMPFILES: [&str; 3] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d"];
const UNITS: &str = "/etc/systemd/system";

/// One place that sets the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyLine {
    /// `FILE:LINE`, or the boot parameter.
    pub place: String,
    /// `always`, `madvise` or `never`.
    pub value: String,
}

impl PolicyLine {
    /// A place and the value that it sets.
    pub(super) fn new(place: impl Into<String>, value: &str) -> Self {
        Self {
            place: place.into(),
            value: value.trim_matches('"').to_owned(),
        }
    }
}

/// All lines; `next` is the command line of the next boot, where it is known to be another.
pub(super) fn read(source: &Source, next: &Result<Option<BootLine>, Unread>) -> Result<Vec<PolicyLine>, Unread> {
    has_configuration(source)?;
    let mut lines: Vec<PolicyLine> = boot(source)?.into_iter().collect();
    let next = next
        .as_ref()
        .map_err(Clone::clone)?
        .as_ref()
        .and_then(|next| Some(PolicyLine::new(&next.place, next.boot.thp.as_deref()?)));
    lines.extend(next.filter(|next| lines.iter().all(|line| line.value != next.value)));
    lines.extend(tmpfiles(source, |line, file, value| {
        file.ends_with(ENABLED).then(|| PolicyLine::new(line.place(), value))
    })?);
    lines.extend(sysfs_conf(source)?);
    lines.extend(units(source)?);
    // tuned leaves the policy alone when the command line sets it (plugin_vm).
    if lines.iter().all(|line| line.place != "/proc/cmdline") {
        lines.extend(tuned(source)?);
    }
    Ok(lines)
}

fn boot(source: &Source) -> Result<Option<PolicyLine>, Unread> {
    let line = source.line("/proc/cmdline").into_result()?;
    let policy = Boot::parse(&line, None).thp;
    Ok(policy.map(|value| PolicyLine::new("/proc/cmdline", &value)))
}

/// Lines such as `w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`, by file and value; a file hides one of its name in a
/// later directory.
pub(super) fn tmpfiles<T>(
    source: &Source,
    take: impl Fn(&Line<'_>, &str, &str) -> Option<T>,
) -> Result<Vec<T>, Unread> {
    let paths = drop_ins(source, &TMPFILES)?.into_iter().map(|(_, path)| path);
    taken(source, paths, &['#'], |line| {
        let mut words = line.text.split_whitespace();
        let _ = words.next().filter(|kind| kind.starts_with('w'))?;
        take(line, words.next()?, words.nth(4)?)
    })
}

/// `kernel/mm/transparent_hugepage/enabled = never`, of the sysfsutils package.
fn sysfs_conf(source: &Source) -> Result<Vec<PolicyLine>, Unread> {
    let drop_ins = listed(source, "/etc/sysfs.d")?
        .into_iter()
        .map(|name| format!("/etc/sysfs.d/{name}"));
    let paths = ["/etc/sysfs.conf".to_owned()].into_iter().chain(drop_ins);
    taken(source, paths, &['#'], |line| {
        let (file, value) = line.pair()?;
        file.ends_with(ENABLED).then(|| PolicyLine::new(line.place(), value))
    })
}

/// Units such as `disable-thp.service`, whose command writes to the file.
fn units(source: &Source) -> Result<Vec<PolicyLine>, Unread> {
    let named = |name: &String| {
        let name = name.to_ascii_lowercase();
        name.ends_with(".service") && (name.contains("thp") || name.contains("huge"))
    };
    let names = listed(source, UNITS)?.into_iter().filter(named);
    let paths = names.map(|name| format!("{UNITS}/{name}"));
    taken(source, paths, COMMENT, command)
}

/// Commands of a unit that write the policy.
pub(super) fn in_unit(path: &str, text: &str) -> Vec<PolicyLine> {
    said(path, text, COMMENT).filter_map(|line| command(&line)).collect()
}

fn command(line: &Line<'_>) -> Option<PolicyLine> {
    let command = line.text.strip_prefix("ExecStart")?;
    let writes = command.contains(ENABLED) && (command.contains("echo") || command.contains("tee"));
    let words = ["never", "madvise", "always"];
    let value = words.into_iter().find(|word| writes && command.contains(word))?;
    Some(PolicyLine::new(line.place(), value))
}

/// The active profile and, if that says nothing, the ones it includes.
fn tuned(source: &Source) -> Result<Vec<PolicyLine>, Unread> {
    let profiles = super::tuned::profiles(source)?;
    let set = profiles.iter().find_map(|(path, text)| {
        said(path, text, COMMENT).find_map(|line| {
            let (key, value) = line.pair()?;
            let value = match key {
                key if key.starts_with("transparent_huge") || key.ends_with(ENABLED) => value.to_owned(),
                key if key.starts_with("cmdline") => Boot::parse(value.trim_start_matches(['+', '=']), None).thp?,
                _ => return None,
            };
            Some(PolicyLine::new(line.place(), &value))
        })
    });
    Ok(set.into_iter().collect())
}
