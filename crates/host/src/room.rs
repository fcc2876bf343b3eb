//! How much memory limits leave to a process: those of all control groups above it, v1 and v2, and its own (`ulimit`).

mod groups;
#[cfg(test)]
mod tests;

use model::{Bytes, Cause, Reading, Unread};

use crate::Source;
use groups::Hierarchy;

pub use groups::Left;

/// The limit that leaves this process least memory; `None` without a limit.
pub fn own(source: &Source) -> Reading<Option<Left>> {
    let groups = all(source, "memory", |groups, directory| {
        groups.memory_left(source, directory)
    });
    let lefts = groups.and_then(|mut lefts| {
        lefts.extend(rlimits(source)?);
        Ok(lefts)
    });
    Reading::from(lefts).map(least)
}

/// The control group that leaves this process least of a size of hugetlb pages; `None` without a limit.
pub fn own_hugetlb(source: &Source, page: Bytes) -> Reading<Option<Left>> {
    let groups = all(source, "hugetlb", |groups, directory| {
        groups.hugetlb_left(source, directory, page)
    });
    Reading::from(groups).map(least)
}

fn least(lefts: Vec<Left>) -> Option<Left> {
    lefts.into_iter().min_by_key(|left| left.left)
}

/// What each control group above this process leaves.
fn all(
    source: &Source,
    controller: &str,
    left: impl Fn(&Hierarchy, &str) -> Result<Option<Left>, Unread>,
) -> Result<Vec<Left>, Unread> {
    let mut lefts = Vec::new();
    for hierarchy in Hierarchy::all(source, controller)? {
        for directory in hierarchy.directories() {
            lefts.extend(left(&hierarchy, &directory)?);
        }
    }
    Ok(lefts)
}

/// The limits of this process's address space and of its private memory, each with its use.
const RLIMITS: [(&str, &str, &str); 2] = [
    ("Max address space", "VmSize:", "ulimit -v"),
    ("Max data size", "VmData:", "ulimit -d"),
];

fn rlimits(source: &Source) -> Result<Vec<Left>, Unread> {
    let (limits, status) = ("/proc/self/limits", "/proc/self/status");
    let text = source.text(limits).or_if_absent(String::new())?;
    let mut lefts = Vec::new();
    for (name, used, set_by) in RLIMITS {
        let soft = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        let Some(limit) = soft.and_then(|soft| soft.parse::<u64>().ok()) else {
            continue;
        };
        let text = source.text(status).into_result()?;
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix(used)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let kib = kib.ok_or_else(|| Unread::new(Cause::Absent, status, format!("no {used} line")))?;
        lefts.push(Left {
            set_by: set_by.to_owned(),
            left: Bytes(limit.saturating_sub(kib.saturating_mul(1024))),
        });
    }
    Ok(lefts)
}
