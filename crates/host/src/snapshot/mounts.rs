//! File systems with huge pages: hugetlbfs, and tmpfs with `huge=`.

use std::collections::BTreeMap;

use model::Reading;

use super::mount_table;
use crate::Source;

pub use super::mount_table::MOUNTS;
pub use super::mount_table::Mount;

/// hugetlbfs mounts, and tmpfs mounts that ask for huge pages.
pub(super) fn read(source: &Source) -> Reading<Vec<Mount>> {
    let gives_large = |mount: &Mount| match mount.kind.as_str() {
        "hugetlbfs" => true,
        "tmpfs" => mount.option("huge").is_some_and(|huge| huge != "never"),
        _ => false,
    };
    all(source).map(|mounts| mounts.into_iter().filter(gives_large).collect())
}

/// Every mount, in the order in which they were made: of two at one place the later one is on top.
pub fn all(source: &Source) -> Reading<Vec<Mount>> {
    all_of(source, MOUNTS)
}

/// Every mount as a process sees it, or else as this one does: a capture has few of the former. None if neither could be read.
pub fn of_process(source: &Source, pid: u32) -> Vec<Mount> {
    let own = all_of(source, &format!("/proc/{pid}/mounts")).into_result();
    own.or_else(|_| all(source).into_result()).unwrap_or_default()
}

/// Every mount that a process sees.
pub fn all_of(source: &Source, path: &str) -> Reading<Vec<Mount>> {
    source.text(path).map(|table| mount_table::mounts(&table))
}

/// Mounts by their places, to be asked for what a path lies on: a process may have many of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountTree(BTreeMap<String, Mount>);

impl MountTree {
    /// Those that a process sees; empty where they could not be read.
    pub fn of_process(source: &Source, pid: u32) -> Self {
        Self::new(of_process(source, pid))
    }

    /// Those that this process sees.
    pub fn own(source: &Source) -> Reading<Self> {
        all(source).map(Self::new)
    }

    /// Of two at one place the later one is on top.
    fn new(mounts: Vec<Mount>) -> Self {
        let mounts = mounts.into_iter().map(|mount| (mount.target.clone(), mount));
        Self(mounts.collect())
    }

    /// The innermost mount that a path lies on.
    pub fn of(&self, path: &str) -> Option<&Mount> {
        let mut above = Some(path);
        while let Some(at) = above {
            let place = if at.is_empty() { "/" } else { at };
            if let Some(mount) = self.0.get(place) {
                return Some(mount);
            }
            above = at.rsplit_once('/').map(|(above, _)| above);
        }
        None
    }
}
