//! Values that are written to the kernel's files at boot, as lines of tmpfiles.d and of sysfs.conf have them.

use model::Unread;

use super::Setting;
use super::files::{drop_ins, listed, taken};
use super::policy::ENABLED;
use host::Source;

const TMPFILES: [&str; 3] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// Lines such as `w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise`; a file hides one of its name in a later directory.
pub(super) fn tmpfiles(source: &Source) -> Result<Vec<Setting>, Unread> {
    let paths = drop_ins(source, &TMPFILES)?.into_iter().map(|(_, path)| path);
    taken(source, paths, &['#'], |line| {
        let mut rest = line.text;
        let mut word = || {
            let (word, after) = rest.split_once(char::is_whitespace)?;
            rest = after.trim_start();
            Some(word)
        };
        let _ = word().filter(|kind| kind.starts_with('w'))?;
        let file = word()?;
        for _mode_user_group_age in 0..4 {
            word()?;
        }
        // All that is left is the argument (tmpfiles.d(5)): a `-` too many is a part of it.
        Some(line.setting(file, rest))
    })
}

/// `kernel/mm/transparent_hugepage/enabled = never`, of the sysfsutils package.
pub(super) fn sysfs_conf(source: &Source) -> Result<Vec<Setting>, Unread> {
    let drop_ins = listed(source, "/etc/sysfs.d")?
        .into_iter()
        .map(|name| format!("/etc/sysfs.d/{name}"));
    let paths = ["/etc/sysfs.conf".to_owned()].into_iter().chain(drop_ins);
    taken(source, paths, &['#'], |line| {
        let (file, value) = line.pair()?;
        Some(line.setting(file, value))
    })
}

/// Why the kernel does not take a value for a file of huge pages, if it does not. The policy itself is compared elsewhere.
pub(super) fn refused(setting: &Setting) -> Option<Unread> {
    let (directory, name) = setting.name.rsplit_once('/')?;
    let is_ours = directory.contains("transparent_hugepage") || directory.contains("/hugepages-");
    if !is_ours || setting.name.ends_with(ENABLED) {
        return None;
    }
    let value = setting.value.trim_matches('"');
    let words: &[&str] = match name {
        "enabled" => &["always", "inherit", "madvise", "never"],
        "shmem_enabled" => &["always", "inherit", "within_size", "advise", "never", "deny", "force"],
        "defrag" if !directory.ends_with("khugepaged") => &["always", "defer", "defer+madvise", "madvise", "never"],
        _ => &[],
    };
    let is_taken = match words {
        [] => value.parse::<u64>().is_ok(),
        words => words.contains(&value),
    };
    let wanted = match words {
        [] => "a number".to_owned(),
        words => words.join(", "),
    };
    (!is_taken).then(|| setting.garbled(&format!("{wanted}, so the setting stays as it was")))
}
