//! Everything that sets the THP policy at boot: several of these on one machine may disagree.

use model::Unread;

use super::files::{content, has_configuration, listed};
use super::given::script::{Unresolved, Written};
use super::tuned::{Set, profiles, sets};
use super::{Boot, BootLine, Setting, unit, written};
use host::Source;

const ENABLED: &str = "transparent_hugepage/enabled";
const UNITS: &str = "/etc/systemd/system";

/// A place that sets the policy, `FILE:LINE` or the boot parameter, and its value: `always`, `madvise` or `never`.
pub(super) fn set(place: impl Into<String>, value: &str) -> Setting {
    Setting::new(place, "transparent_hugepage", value.trim_matches('"'))
}

/// All lines; `next` is the command line of the next boot, where it is known to be another.
pub(super) fn read(
    source: &Source,
    next: &Result<Option<BootLine>, Unread>,
    units: &Result<Vec<Written>, Unread>,
    refused: &mut Vec<Unread>,
) -> Result<Vec<Setting>, Unread> {
    has_configuration(source)?;
    let mut lines: Vec<Setting> = boot(source)?.into_iter().collect();
    let next = next
        .as_ref()
        .map_err(Clone::clone)?
        .as_ref()
        .and_then(|next| Some(set(&next.place, next.boot.thp.as_deref()?)));
    lines.extend(next.filter(|next| lines.iter().all(|line| line.value != next.value)));
    for setting in [written::tmpfiles(source)?, written::sysfs_conf(source)?].concat() {
        refused.extend(written::refused(&setting));
        lines.extend(of_file(&setting));
    }
    // Units such as `disable-thp.service`.
    for written in units.as_ref().map_err(Clone::clone)? {
        let settings = written.known(Unresolved::may_be_policy)?;
        lines.extend(settings.iter().filter_map(of_file));
    }
    // tuned leaves the policy alone when the command line sets it (plugin_vm).
    if lines.iter().all(|line| line.place != "/proc/cmdline") {
        lines.extend(tuned(source)?);
    }
    Ok(lines)
}

fn boot(source: &Source) -> Result<Option<Setting>, Unread> {
    let line = source.line("/proc/cmdline").into_result()?;
    let policy = Boot::parse(&line, None).thp;
    Ok(policy.map(|value| set("/proc/cmdline", &value)))
}

/// What a line that is written to the file sets; one that is refused sets nothing.
pub(super) fn of_file(setting: &Setting) -> Option<Setting> {
    let is_policy = setting.name.ends_with(ENABLED) && written::refused(setting).is_none();
    is_policy.then(|| set(&setting.place, &setting.value))
}

/// The files of each unit that is named for huge pages and starts at boot: paths and texts.
pub(super) fn unit_files(source: &Source) -> Result<Vec<Vec<(String, String)>>, Unread> {
    let with_text = |path: String| Ok(content(source, &path)?.map(|text| (path, text)));
    let of = |name: String| {
        let paths = unit::files(source, &name)?.into_iter();
        paths.filter_map(|path| with_text(path).transpose()).collect()
    };
    units_at_boot(source)?.into_iter().map(of).collect()
}

/// Units that are named for huge pages and start at boot: those that something wants. Where no such link is there at all, as in older captures,
/// those of the administrator.
pub(super) fn units_at_boot(source: &Source) -> Result<Vec<String>, Unread> {
    let here = listed(source, UNITS)?;
    let is_of_links = |name: &&String| name.ends_with(".wants") || name.ends_with(".requires");
    let links: Vec<&String> = here.iter().filter(is_of_links).collect();
    let mut names = Vec::new();
    for links in &links {
        names.extend(listed(source, &format!("{UNITS}/{links}"))?);
    }
    if links.is_empty() {
        names = here;
    }
    names.retain(|name| name.ends_with(".service") && is_named(name));
    names.sort();
    names.dedup();
    Ok(names)
}

/// Is it named for huge pages?
pub(super) fn is_named(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("thp") || name.contains("huge")
}

/// The active profile and, if that says nothing, the ones it includes.
fn tuned(source: &Source) -> Result<Vec<Setting>, Unread> {
    let of = |own: Set<'_>| match own {
        Set::Policy(policy) => Some(policy),
        Set::File(file) => of_file(&file),
        Set::Boot(place, words) => Some(set(place, &Boot::parse(words, None).thp?)),
        Set::Sysctl(_) => None,
    };
    let profiles = profiles(source)?;
    let set = profiles.iter().find_map(|(path, text)| sets(path, text).find_map(of));
    Ok(set.into_iter().collect())
}
