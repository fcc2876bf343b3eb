//! A process and all that descend from it.

use std::collections::{BTreeMap, BTreeSet};

use host::Source;
use host::processes::Stat;
use model::{Cause, Reading, Unread};

use crate::cgroup::Folder;

/// A process with its descendants.
#[derive(Debug, Default)]
pub struct Family {
    /// The process itself first.
    pub pids: Vec<u32>,
    /// Why there may be more of them.
    pub not_whole: Option<Unread>,
}

/// The process itself first, and those in its cgroup, if it has one of its own. Threads start processes, too, so every thread's children are read
/// (`/proc/PID/task/TID/children`). On a kernel without that file (CONFIG_PROC_CHILDREN) the parent of every process is read instead.
pub fn of(source: &Source, root: u32) -> Family {
    let mut family = Family {
        pids: vec![root],
        not_whole: None,
    };
    if let Some(cgroup) = Folder::of(source, root) {
        family.add(cgroup.pids());
    }
    let mut next = 0;
    while let Some(&pid) = family.pids.get(next) {
        next += 1;
        for task in tasks(source, pid) {
            let has_ended = || source.list(&format!("/proc/{pid}/task/{task}")).known().is_none();
            match children_of_thread(source, pid, task) {
                Reading::Known(pids) => family.add(pids),
                // It ended while it was looked at.
                Reading::Unread(why) if why.unread == Cause::Absent && has_ended() => {}
                Reading::Unread(why) => match by_parents(source, root) {
                    Some(pids) => return Family { pids, not_whole: None },
                    None => family.not_whole = Some(why),
                },
            }
        }
    }
    family
}

impl Family {
    fn add(&mut self, pids: impl IntoIterator<Item = u32>) {
        for pid in pids {
            if !self.pids.contains(&pid) {
                self.pids.push(pid);
            }
        }
    }
}

/// The same from the parent of every process; `None` if one could not be read.
fn by_parents(source: &Source, root: u32) -> Option<Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in source.pids().into_result().ok()? {
        let parent = match Stat::of(source, pid) {
            Reading::Known(stat) => stat?.parent()?,
            Reading::Unread(why) if why.unread == Cause::Absent => continue,
            Reading::Unread(_) => return None,
        };
        children.entry(parent).or_default().push(pid);
    }
    let (mut pids, mut next) = (vec![root], 0);
    while let Some(&pid) = pids.get(next) {
        next += 1;
        pids.extend(children.remove(&pid).unwrap_or_default());
    }
    Some(pids)
}

/// The members of a process group, those that have ended and wait for their parents among them; `None` if that cannot be read.
pub fn group(source: &Source, leader: i32) -> Option<BTreeSet<u32>> {
    let is_member = |pid: &u32| {
        let stat = Stat::of(source, *pid).into_result().ok().flatten();
        stat.and_then(|stat| stat.group()) == Some(leader)
    };
    let pids = source.pids().into_result().ok()?;
    Some(pids.into_iter().filter(is_member).collect())
}

/// Those that have this variable (`NAME=VALUE`) since they executed a program, as far as this process may read that.
pub fn with_variable(source: &Source, variable: &[u8]) -> Vec<u32> {
    let has_it = |pid: &u32| {
        let bytes = source.bytes(&format!("/proc/{pid}/environ")).into_result();
        let bytes = bytes.unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|one| one == variable)
    };
    let pids = source.pids().into_result().unwrap_or_default();
    pids.into_iter().filter(has_it).collect()
}

/// The children of all its threads; none where the kernel does not list them (CONFIG_PROC_CHILDREN).
pub(crate) fn children(source: &Source, pid: u32) -> Vec<u32> {
    let of_thread = |task: u32| children_of_thread(source, pid, task).into_result();
    let lists = tasks(source, pid).into_iter().filter_map(|task| of_thread(task).ok());
    lists.flatten().collect()
}

fn children_of_thread(source: &Source, pid: u32, task: u32) -> Reading<Vec<u32>> {
    let list = source.text(&format!("/proc/{pid}/task/{task}/children"));
    list.map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// The threads of processes, each with its process.
pub fn threads(source: &Source, pids: impl IntoIterator<Item = u32>) -> impl Iterator<Item = (u32, u32)> {
    let of = |pid| tasks(source, pid).into_iter().map(move |tid| (pid, tid));
    pids.into_iter().flat_map(of)
}

/// The program of a process and its arguments; none of one that is gone, or of the kernel.
pub fn words(source: &Source, pid: u32) -> Vec<String> {
    let bytes = source
        .bytes(&format!("/proc/{pid}/cmdline"))
        .into_result()
        .unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The threads of a process; none of one that is gone.
pub fn tasks(source: &Source, pid: u32) -> Vec<u32> {
    let tasks = source.list(&format!("/proc/{pid}/task")).into_result();
    let names = tasks.unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{group, of, with_variable};
    use host::{Source, Tree};

    #[test]
    fn children_of_every_thread_and_their_children_are_found() {
        let mut machine = Tree::default();
        for (task, children) in [
            ("1/task/1", "2 3 "),
            ("1/task/5", "4"),
            ("2/task/2", "9"),
            ("3/task/3", ""),
        ] {
            machine = machine.file(&format!("/proc/{task}/children"), children);
        }
        let family = of(&Source::from_tree("made", machine), 1);
        let mut found = family.pids;
        found.sort_unstable();
        assert_eq!((found, family.not_whole), (vec![1, 2, 3, 4, 9], None));
    }

    /// A kernel without the file: only parents are known.
    #[test]
    fn children_that_cannot_be_read_are_not_none() {
        let with = |stats: &[(u32, u32)]| {
            let mut machine = Tree::default();
            for (pid, parent) in stats {
                machine = machine.file(&format!("/proc/{pid}/stat"), format!("{pid} (a) b) S {parent} 1 1\n"));
                machine = machine.file(&format!("/proc/{pid}/task/{pid}/stat"), "");
            }
            machine
        };
        let machine = with(&[(1, 0), (7, 1), (8, 7), (9, 8), (10, 1)]);
        let family = of(&Source::from_tree("made", machine), 7);
        assert_eq!((family.pids, family.not_whole), (vec![7, 8, 9], None));
        let machine = with(&[(7, 1), (8, 7)]).file("/proc/8/stat", "garbled");
        let family = of(&Source::from_tree("made", machine), 7);
        assert!(family.not_whole.is_some(), "{:?}", family.pids);
    }

    #[test]
    fn a_variable_is_that_of_its_whole_text() {
        let machine = [(7, "A=1\0MARK=12\0"), (8, "MARK=1\0"), (9, "XMARK=1\0B=MARK=1\0")];
        let machine = machine.into_iter().fold(Tree::default(), |machine, (pid, variables)| {
            machine.file(&format!("/proc/{pid}/environ"), variables)
        });
        let machine = Source::from_tree("made", machine.file("/proc/10/stat", ""));
        assert_eq!(with_variable(&machine, b"MARK=1"), [8]);
    }

    #[test]
    fn members_of_a_group_are_found_whatever_their_names() {
        let mut machine = Tree::default();
        for (pid, rest) in [(7, "(a) S 1 7 7"), (8, "(b) 7 7) Z 1 7 7"), (9, "(c) S 7 9 7")] {
            machine = machine.file(&format!("/proc/{pid}/stat"), format!("{pid} {rest}\n"));
        }
        let members = group(&Source::from_tree("made", machine), 7);
        assert_eq!(members, Some([7, 8].into()));
        assert_eq!(group(&Source::from_tree("made", Tree::default()), 7), None);
    }
}
