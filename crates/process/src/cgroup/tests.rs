//! Where cgroups are made, and what is in them.

use super::{Cgroup, Cpu, cpu, ours};

#[test]
fn a_directory_that_is_no_cgroup_is_left_as_it_was() {
    let folder = tempfile::tempdir().expect("a directory");
    assert!(Cgroup::below(folder.path()).is_none());
    assert_eq!(ours(folder.path()), []);
}

#[test]
fn cpu_time_is_read_whole_or_not_at_all() {
    let stat = "usage_usec 3500000\nuser_usec 3000000\nsystem_usec 500000\nnice_usec 0\n";
    let all = Cpu { user: 3.0, system: 0.5 };
    assert_eq!(cpu(stat), Some(all));
    assert_eq!(cpu("usage_usec 1\nuser_usec 1\n"), None);
    assert_eq!(cpu(""), None);
}
