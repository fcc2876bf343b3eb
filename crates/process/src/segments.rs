//! Shared memory of System V outlives a program that is killed, which would have removed it at its end.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use host::Source;
use rustix::process::{Pid, Signal};

use crate::handles::signal_group;
use crate::{syscall, tree};

/// The members of a process group that is about to be killed.
pub(crate) struct Makers {
    pids: BTreeSet<String>,
    /// When the group began, in seconds from 1970: a segment that changed last before that is of another process of that number.
    since: u64,
}

impl Makers {
    /// The members of a group that began so long ago, stopped so that none of them starts another one before it is killed.
    pub(crate) fn of_stopped(source: &Source, leader: Pid, ago: Duration) -> Self {
        signal_group(leader, Signal::STOP);
        Self::of(source, leader, ago)
    }

    /// The members of a group that began so long ago, as they are now.
    pub(crate) fn of(source: &Source, leader: Pid, ago: Duration) -> Self {
        let leader = leader.as_raw_nonzero().get();
        let members = tree::group(source, leader).unwrap_or_default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let begun = now.unwrap_or_default().saturating_sub(ago + Duration::from_secs(1));
        Self {
            pids: members.iter().map(u32::to_string).chain([leader.to_string()]).collect(),
            since: begun.as_secs(),
        }
    }

    /// Removes the segments that they made and nobody has attached any more, once they have ended.
    pub(crate) fn clear(&self, source: &Source) {
        let text = source.text("/proc/sysvipc/shm").into_result().ok();
        for id in text.iter().flat_map(|text| self.left(text)) {
            syscall::remove_segment(id);
        }
    }

    fn left(&self, text: &str) -> impl Iterator<Item = i32> {
        text.lines().skip(1).filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (id, by, attached, changed) = (words.get(1)?, *words.get(4)?, *words.get(6)?, words.get(13)?);
            let is_left = self.pids.contains(by) && attached == "0" && changed.parse::<u64>().ok()? >= self.since;
            is_left.then(|| id.parse().ok()).flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Makers;

    #[test]
    fn of_a_killed_process_what_nobody_has_attached_is_left() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         1          7   600                    56   400   400      0 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         2          8   600                    56   400   401      1 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         3          9   600                    56  4000   401      0 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         4         10   600                    56   400   401      0 61001 61001 61001 61001 1664188000 1664188001 1664188000                  4096                     0
cut off  11
";
        let makers = Makers {
            pids: ["399".to_owned(), "400".to_owned()].into(),
            since: 1_764_187_999,
        };
        let left: Vec<i32> = makers.left(text).collect();
        assert_eq!(
            left,
            [7],
            "attached, of another process, of a process that had the number before, and no row"
        );
    }
}
