//! The control groups of this process in one hierarchy, and what each leaves.

use model::{Bytes, Cause, Reading, Unread};

use crate::Source;
use crate::groups::{self, Limit, NO_LIMIT, hugetlb_files};
use crate::membership::{group_of, with_ancestors};
use crate::mountinfo::{self, lines};

const GROUPS: &str = "/proc/self/cgroup";

/// A limit, and what it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The file of the limit, or its name.
    pub set_by: String,
    /// What may still be taken.
    pub left: Bytes,
}

/// A hierarchy with a controller, where it is mounted, and this process's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    is_v1: bool,
    mount: String,
    /// Below the mount; empty for its own top.
    group: String,
}

impl Hierarchy {
    /// Those that have the controller, or may have it; none where no control groups are mounted.
    pub(super) fn all(source: &Source, controller: &str) -> Result<Vec<Self>, Unread> {
        let mounts = source.text(mountinfo::OWN).or_if_absent(String::new())?;
        let groups = source.text(GROUPS).or_if_absent(String::new())?;
        let found = lines(&mounts).filter_map(|mount| {
            let is_v1 = match mount.kind {
                "cgroup" if mount.options().any(|option| option == controller) => true,
                // Its controllers are read from its files.
                "cgroup2" => false,
                _ => return None,
            };
            let path = group_of(&groups, if is_v1 { controller } else { "" })?;
            Some(Self {
                is_v1,
                // A group outside of the mount: only the mount's own top is known to hold for it.
                group: mount.below(path).unwrap_or_default().to_owned(),
                mount: mount.target,
            })
        });
        Ok(found.collect())
    }

    /// The group's directory and those of all groups above it.
    pub(super) fn directories(&self) -> Vec<String> {
        let groups = with_ancestors(&self.group);
        groups.map(|group| format!("{}{group}", self.mount)).collect()
    }

    /// What a group leaves of memory, if it has a limit: the limit less what is in use, but for file pages that make way.
    pub(super) fn memory_left(&self, source: &Source, directory: &str) -> Result<Option<Left>, Unread> {
        let (limits, usage, prefix): (&[&str], _, _) = match self.is_v1 {
            true => (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_"),
            false => (&["memory.max", "memory.high"], "memory.current", ""),
        };
        let mut least: Option<(u64, String)> = None;
        for name in limits {
            let file = format!("{directory}/{name}");
            let limit = limit(source, &file)?.map(|limit| (limit, file));
            least = least.into_iter().chain(limit).min();
        }
        if self.is_v1 {
            least = least.into_iter().chain(inherited(source, directory)?).min();
        }
        let Some((limit, set_by)) = least else { return Ok(None) };
        let used = number(source, &format!("{directory}/{usage}"))?;
        let stat = source
            .text(&format!("{directory}/memory.stat"))
            .into_result()
            .unwrap_or_default();
        let reclaimable: u64 = ["inactive_file ", "active_file "]
            .iter()
            .filter_map(|name| count(&stat, &format!("{prefix}{name}")))
            .sum();
        let left = Bytes(limit.saturating_sub(used.saturating_sub(reclaimable)));
        Ok(Some(Left { set_by, left }))
    }

    /// What a group leaves of hugetlb pages of a size, if it limits them: by use, and by reservation.
    pub(super) fn hugetlb_left(&self, source: &Source, directory: &str, page: Bytes) -> Result<Option<Left>, Unread> {
        let mut least: Option<Left> = None;
        for part in ["", ".rsvd"] {
            let [max, usage] = hugetlb_files(directory, page, part, self.is_v1);
            let Some(limit) = limit(source, &max)? else { continue };
            let left = Bytes(limit.saturating_sub(number(source, &usage)?));
            let left = Left { set_by: max, left };
            least = least.into_iter().chain([left]).min_by_key(|left| left.left);
        }
        Ok(least)
    }
}

/// v1 shows the least limit of all groups above, those that a container does not see included.
fn inherited(source: &Source, directory: &str) -> Result<Option<(u64, String)>, Unread> {
    let file = format!("{directory}/memory.stat");
    let stat = source.text(&file).or_if_absent(String::new())?;
    let limit = count(&stat, "hierarchical_memory_limit ").filter(|limit| *limit < NO_LIMIT);
    Ok(limit.map(|limit| (limit, format!("hierarchical_memory_limit in {file}"))))
}

/// A limit, or none: without the file, with `max`, or with v1's number for none.
fn limit(source: &Source, file: &str) -> Result<Option<u64>, Unread> {
    Ok(match groups::limit(source, file).if_present()? {
        Some(Limit::Bytes(bytes)) => Some(bytes),
        Some(Limit::Unlimited) | None => None,
    })
}

fn number(source: &Source, file: &str) -> Result<u64, Unread> {
    match source.number(file) {
        Reading::Known(number) => Ok(number),
        // Without it a limit says nothing.
        Reading::Unread(why) => Err(Unread::new(
            Cause::Failed,
            file,
            format!("there is a limit, but its use is {why}"),
        )),
    }
}

fn count(stat: &str, name: &str) -> Option<u64> {
    stat.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}
