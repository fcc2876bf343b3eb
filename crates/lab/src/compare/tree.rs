//! A process and all that descend from it.

use host::Source;

/// The process itself first. Threads start processes, too, so every thread's children are asked for
/// (`/proc/PID/task/TID/children`).
pub(super) fn of(source: &Source, root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&pid) = tree.get(next) {
        next += 1;
        for task in tasks(source, pid) {
            let children = source.text(&format!("/proc/{pid}/task/{task}/children"));
            let pids = children.known().map(String::as_str).unwrap_or_default();
            tree.extend(pids.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    tree
}

/// The threads of a process; none of one that is gone.
pub(super) fn tasks(source: &Source, pid: u32) -> Vec<u32> {
    let tasks = source.list(&format!("/proc/{pid}/task")).into_result();
    let names = tasks.unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::of;
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
        let mut found = of(&Source::from_tree("made", machine), 1);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4, 9]);
    }
}
