//! What the kernel, PAM and tuned refuse or ignore of the machine's own files: the setting stays as it was, and nothing else says so.

use model::{Reading, Unread};

use super::{LimitLine, Setting, Settings, boot, limits, sysctl_files};

/// Everything that is refused; `more` was noticed while files were read.
pub(super) fn all(
    sysctl: &Reading<Settings>,
    limit_lines: &Reading<Vec<LimitLine>>,
    policies: &Reading<Vec<Setting>>,
    more: Vec<Unread>,
) -> Vec<Unread> {
    let sysctl = sysctl.known().into_iter().flat_map(Settings::iter);
    let limit_lines = limit_lines.known().into_iter().flatten();
    let policies = policies.known().into_iter().flatten();
    let limits = limit_lines.filter(|line| line.item == "memlock" && !limits::is_known(line));
    let policies = policies.filter(|line| !boot::is_policy(&line.value));
    sysctl
        .filter_map(sysctl_files::refused)
        .chain(limits.map(|line| {
            Setting::new(&line.place, &line.item, &line.value).garbled("KiB or `unlimited`, so PAM sets no such limit")
        }))
        .chain(policies.map(|line| line.garbled("always, madvise or never, so the policy stays as it was")))
        .chain(more)
        .collect()
}
