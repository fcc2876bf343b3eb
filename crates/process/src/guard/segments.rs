//! Shared memory of System V outlives a program that is killed, which would have removed it at its end.

use host::Source;
use rustix::process::Pid;

use crate::syscall;

/// Removes the segments that this process made since then, in seconds from 1970, if nobody has them attached any more.
pub(super) fn remove(source: &Source, maker: Pid, since: u64) {
    let text = source.text("/proc/sysvipc/shm").into_result().ok();
    let maker = maker.as_raw_nonzero().get().to_string();
    for id in text.iter().flat_map(|text| made_by(text, &maker, since)) {
        syscall::remove_segment(id);
    }
}

fn made_by(text: &str, maker: &str, since: u64) -> impl Iterator<Item = i32> {
    text.lines().skip(1).filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (id, by, attached, changed) = (words.get(1)?, *words.get(4)?, *words.get(6)?, words.get(13)?);
        let is_left = by == maker && attached == "0" && changed.parse::<u64>().ok()? >= since;
        is_left.then(|| id.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::made_by;

    #[test]
    fn of_a_killed_process_what_nobody_has_attached_is_left() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         1          7   600                    56   400   400      0 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         2          8   600                    56   400   401      1 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         3          9   600                    56  4000   401      0 61001 61001 61001 61001 1764188000 1764188001 1764188000                  4096                     0
         4         10   600                    56   400   401      0 61001 61001 61001 61001 1664188000 1664188001 1664188000                  4096                     0
cut off  11
";
        let left: Vec<i32> = made_by(text, "400", 1_764_187_999).collect();
        assert_eq!(
            left,
            [7],
            "attached, of another process, of a process that had the number before, and no row"
        );
    }
}
