//! Values that are written to the kernel's files at boot, as lines of tmpfiles.d and of sysfs.conf have them.

use model::{Cause, Unread};

use super::files::{Line, drop_ins, listed, said, taken};
use super::{Setting, Settings};
use host::Source;

const TMPFILES: [&str; 3] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// Files of tmpfiles.d; a file hides one of its name in a later directory.
pub(super) fn tmpfiles(source: &Source) -> Result<Vec<Setting>, Unread> {
    let paths = drop_ins(source, &TMPFILES)?.into_iter().map(|(_, path)| path);
    taken(source, paths, &['#'], of_tmpfiles)
}

/// `w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`
fn of_tmpfiles(line: &Line<'_>) -> Option<Setting> {
    let mut rest = line.text;
    let mut word = || {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        rest = after.trim_start();
        Some(word)
    };
    let _ = word().filter(|kind| kind.starts_with('w'))?;
    let file = word().filter(|file| file.starts_with('/'))?;
    for _mode_user_group_age in 0..4 {
        word()?;
    }
    // All that is left is the argument (tmpfiles.d(5)): a `-` too many is a part of it.
    Some(line.setting(file, rest))
}

/// Files of the sysfsutils package.
pub(super) fn sysfs_conf(source: &Source) -> Result<Vec<Setting>, Unread> {
    let drop_ins = listed(source, "/etc/sysfs.d")?
        .into_iter()
        .map(|name| format!("/etc/sysfs.d/{name}"));
    let paths = ["/etc/sysfs.conf".to_owned()].into_iter().chain(drop_ins);
    taken(source, paths, &['#'], of_sysfs)
}

/// `kernel/mm/transparent_hugepage/enabled = never`; `mode FILE = 0644` and `owner FILE = root` write nothing to it.
fn of_sysfs(line: &Line<'_>) -> Option<Setting> {
    let (file, value) = line.pair().filter(|(file, _)| !file.contains(char::is_whitespace))?;
    Some(line.setting(file, value))
}

/// Pages of the default size by node that PF_RING's start script asks for: `node=0 hugepagenumber=1024`. It takes two words by their places, and
/// no notice of their names.
pub(super) fn of_pf_ring(line: &Line<'_>) -> Option<(u32, u64)> {
    let mut values = line.text.split_whitespace().map(|word| word.split_once('='));
    let (Some((name, node)), Some((_, pages))) = (values.next()?, values.next()?) else {
        return None;
    };
    Some((node.parse().ok().filter(|_| name == "node")?, pages.parse().ok()?))
}

/// The surplus pages of pools by their size, for which sysctl has no setting.
pub(super) fn surplus(source: &Source) -> Result<Settings, Unread> {
    let mut lines = [tmpfiles(source)?, sysfs_conf(source)?].concat();
    lines.retain(is_surplus);
    Ok(Settings(lines))
}

pub(super) fn is_surplus(setting: &Setting) -> bool {
    setting.name.contains("/hugepages-") && setting.name.ends_with("/nr_overcommit_hugepages")
}

/// Is it PF_RING's hugepages.conf?
pub(super) fn is_pf_ring(text: &str) -> bool {
    let mut lines = said("", text, &['#']).peekable();
    lines.peek().is_some() && lines.all(|line| of_pf_ring(&line).is_some())
}

/// Is it a file of either form, by its directory or by a line of it?
pub(super) fn is_form(path: &str, text: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (name, directory) = (parts.next(), parts.next());
    let is_named = name == Some("sysfs.conf") || matches!(directory, Some("tmpfiles.d" | "sysfs.d"));
    is_named || writes(text) || !in_text(path, text).is_empty()
}

/// Has it a line of tmpfiles.d that writes to a file of the kernel?
pub(super) fn writes(text: &str) -> bool {
    let of_kernel = |name: &str| ["/sys/", "/proc/"].iter().any(|below| name.starts_with(below));
    let mut settings = said("", text, &['#']).filter_map(|line| of_tmpfiles(&line));
    settings.any(|setting| of_kernel(&setting.name))
}

/// The lines of a file of either form that write to files below /sys.
pub(super) fn in_text(path: &str, text: &str) -> Vec<Setting> {
    let lines = said(path, text, &['#']);
    let settings = lines.filter_map(|line| of_tmpfiles(&line).or_else(|| of_sysfs(&line)));
    settings.filter(|setting| setting.name.contains("kernel/mm/")).collect()
}

/// Files of the directory of THP.
const THP: [&str; 6] = [
    "enabled",
    "defrag",
    "shmem_enabled",
    "use_zero_page",
    "shrink_underused",
    "hpage_pmd_size",
];

/// Why the kernel does not take a value for a file of huge pages, if it does not.
pub(super) fn refused(setting: &Setting) -> Option<Unread> {
    let (directory, name) = setting.name.rsplit_once('/')?;
    let is_ours = directory.contains("transparent_hugepage") || directory.contains("/hugepages-");
    if !is_ours {
        return None;
    }
    if directory.ends_with("sys/kernel/mm/transparent_hugepage")
        && !THP.contains(&name)
        && !name.starts_with("hugepages-")
    {
        let why = format!("{}: Linux has no such file (it has {})", setting.name, THP.join(", "));
        return Some(Unread::new(Cause::Garbled, &setting.place, why));
    }
    let value = setting.value.trim_matches('"');
    let words: &[&str] = match name {
        "enabled" if directory.ends_with("transparent_hugepage") => &["always", "madvise", "never"],
        "enabled" => &["always", "inherit", "madvise", "never"],
        "shmem_enabled" => &["always", "inherit", "within_size", "advise", "never", "deny", "force"],
        "defrag" if !directory.ends_with("khugepaged") => &["always", "defer", "defer+madvise", "madvise", "never"],
        _ => &[],
    };
    let is_taken = match words {
        // memparse(): a number with a unit behind it.
        [] if name == "demote_size" => value.starts_with(|c: char| c.is_ascii_digit()),
        [] => value.parse::<u64>().is_ok(),
        words => words.contains(&value),
    };
    let wanted = match words {
        [] => "a number".to_owned(),
        words => words.join(", "),
    };
    (!is_taken).then(|| setting.garbled(&format!("{wanted}, so the setting stays as it was")))
}
