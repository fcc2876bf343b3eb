//! Processes that this user does not even see: `hidepid` of /proc.

use model::process::{Remedy, Unseen};
use model::{Cause, Unread};

use crate::Source;
use crate::snapshot::mounts;

/// Values of `hidepid` that take processes out of the list; `noaccess` (1) leaves them there, unreadable.
const HIDING: [&str; 4] = ["2", "invisible", "4", "ptraceable"];

/// Why processes of other users are not listed, if that is so. Root and the group of the mount (`gid=`) see all of them, the first
/// process among these.
pub fn hidden(source: &Source) -> Option<Unread> {
    let mounts = mounts::all(source);
    let is_proc = |mount: &&mounts::Mount| mount.target == "/proc" && mount.kind == "proc";
    let hidepid = mounts.known()?.iter().rfind(is_proc)?.option("hidepid")?.to_owned();
    let sees_first = source.pids().known().is_some_and(|pids| pids.contains(&1));
    (HIDING.contains(&&*hidepid) && !sees_first).then(|| {
        let why = format!("mounted with hidepid={hidepid}, which hides the processes of other users");
        Unread::new(Cause::Denied, "/proc", why)
    })
}

/// No process is known to be unread; others may be hidden.
pub fn unseen(source: &Source) -> Unseen {
    Unseen {
        hidden: hidden(source),
        remedy: match source.is_live() {
            true => (!rustix::process::geteuid().is_root()).then_some(Remedy::Sudo),
            false => Some(Remedy::SnapshotWithSudo),
        },
        ..Unseen::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Remedy, hidden, unseen};
    use crate::{Source, Tree};

    #[test]
    fn hidepid_hides_processes_unless_the_first_is_seen() {
        let is_hidden = |options: &str, pid: u32| {
            let tree = Tree::new()
                .line("/proc/self/mounts", format!("proc /proc proc rw{options} 0 0"))
                .line(&format!("/proc/{pid}/comm"), "a");
            hidden(&Source::from_tree("made", tree)).is_some()
        };
        for value in ["2", "invisible", "4", "ptraceable"] {
            assert!(is_hidden(&format!(",hidepid={value}"), 7), "{value}");
            assert!(
                !is_hidden(&format!(",hidepid={value}"), 1),
                "{value}: root, or a member of gid="
            );
        }
        assert!(!is_hidden("", 7));
        let capture = unseen(&Source::from_tree("made", Tree::new()));
        assert_eq!(
            capture.remedy,
            Some(Remedy::SnapshotWithSudo),
            "root reads a capture the same"
        );
        assert!(!is_hidden(",hidepid=noaccess", 7), "these are listed, and unreadable");
    }
}
