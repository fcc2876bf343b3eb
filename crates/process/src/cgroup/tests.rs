//! Where cgroups are made, and what is in them.

use host::{Source, Tree};

use super::{Cgroup, Cpu, base, cpu, ours};

#[test]
fn a_directory_that_is_no_cgroup_is_left_as_it_was() {
    let folder = tempfile::tempdir().expect("a directory");
    assert!(Cgroup::below(folder.path()).is_none());
    assert_eq!(ours(folder.path()), []);
}

fn machine(mount: &str, group: &str) -> Source {
    let mounts = format!("30 23 0:26 / /proc rw - proc proc rw\n{mount}\n");
    let machine = Tree::new().file("/proc/self/mountinfo", mounts);
    Source::from_tree(
        "made",
        machine.file("/proc/self/cgroup", format!("4:memory:/docker/x\n{group}\n")),
    )
}

#[test]
fn cgroups_are_made_below_the_one_that_this_process_is_in() {
    let at = |mount: &str, group: &str| base(&machine(mount, group)).map(|path| path.display().to_string());
    let whole = "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
    assert_eq!(
        at(whole, "0::/user.slice/a"),
        Some("/sys/fs/cgroup/user.slice/a".to_owned())
    );
    assert_eq!(at(whole, "0::/"), Some("/sys/fs/cgroup/".to_owned()));
    let part = "31 23 0:27 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw";
    assert_eq!(at(part, "0::/docker/x/own"), Some("/sys/fs/cgroup/own".to_owned()));
    assert_eq!(at(part, "0::/../y"), None, "it is outside of what is mounted");
    assert_eq!(
        at(
            "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
            "0::/"
        ),
        None
    );
}

#[test]
fn cpu_time_is_read_whole_or_not_at_all() {
    let stat = "usage_usec 3500000\nuser_usec 3000000\nsystem_usec 500000\nnice_usec 0\n";
    let all = Cpu { user: 3.0, system: 0.5 };
    assert_eq!(cpu(stat), Some(all));
    assert_eq!(cpu("usage_usec 1\nuser_usec 1\n"), None);
    assert_eq!(cpu(""), None);
}
