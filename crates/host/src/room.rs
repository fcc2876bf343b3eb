//! How much memory limits leave to a process: those of all control groups above it, v1 and v2, and its own (`ulimit`).

mod groups;
#[cfg(test)]
mod tests;

use model::{Bytes, Cause, Reading, Unread};

use crate::Source;
use groups::Hierarchy;

pub use groups::Left;

/// What limits leave of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The limit that leaves least; none if there is no limit.
    pub least: Option<Left>,
}

impl Room {
    /// What can be had where the machine has so much.
    pub fn within(&self, machine: Bytes) -> Bytes {
        self.least.as_ref().map_or(machine, |least| least.left.min(machine))
    }
}

/// What limits leave to this process.
pub fn own(source: &Source) -> Reading<Room> {
    let groups = all(source, "memory", |groups, directory| {
        groups.memory_left(source, directory)
    });
    let room = groups.and_then(|mut lefts| {
        lefts.extend(rlimits(source)?);
        let least = lefts.into_iter().min_by_key(|left| left.left);
        Ok(Room { least })
    });
    room.into()
}

/// What control groups leave to this process of a size of hugetlb pages; `None` without a limit.
pub fn own_hugetlb(source: &Source, page: Bytes) -> Reading<Option<Left>> {
    let groups = all(source, "hugetlb", |groups, directory| {
        groups.hugetlb_left(source, directory, page)
    });
    Reading::from(groups).map(|lefts| lefts.into_iter().min_by_key(|left| left.left))
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
