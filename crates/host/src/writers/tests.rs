//! Owners, modes, access lists, groups, directories above, and file systems of processes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};

use super::{ACCESS_LIST, changed_only_by, is_private, server};
use crate::{Source, Tree};

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

fn refused(path: &Path, users: &[u32]) -> String {
    changed_only_by(path, users).expect_err("refused")
}

/// The owner reads and writes, the group reads, and so does user 61001, who may also write.
fn access_list() -> Vec<u8> {
    let entry =
        |tag: u16, rights: u16, id: u32| [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat();
    let none = u32::MAX;
    let entries = [(1, 6, none), (2, 6, 61_001), (4, 4, none), (16, 6, none), (32, 0, none)];
    let entries = entries.map(|(tag, rights, id)| entry(tag, rights, id)).concat();
    [2_u32.to_le_bytes().to_vec(), entries].concat()
}

#[test]
fn a_file_or_a_directory_above_that_everyone_may_write_is_named() {
    let temp = tempfile::tempdir().expect("a directory");
    let folder = temp.path().join("folder");
    let file = folder.join("file");
    fs::create_dir(&folder).expect("a directory");
    fs::write(&file, "").expect("a file");
    allow(&folder, 0o755);
    allow(&file, 0o644);
    assert!(changed_only_by(&file, &[own()]).is_ok());
    for (path, mode) in [(&file, 0o646), (&folder, 0o757)] {
        allow(path, mode);
        let why = refused(&file, &[own()]);
        assert!(why.starts_with(&format!("{} may be changed", path.display())), "{why}");
        allow(path, 0o755);
    }
    allow(&folder, 0o1777);
    assert!(changed_only_by(&file, &[own()]).is_ok(), "others cannot rename in it");
    assert!(changed_only_by(&folder, &[own()]).is_err(), "but put files into it");
}

#[test]
fn an_access_list_that_gives_another_user_the_file_is_seen_behind_a_private_group() {
    let temp = tempfile::tempdir().expect("a directory");
    let file = temp.path().join("file");
    fs::write(&file, "").expect("a file");
    if setxattr(&file, ACCESS_LIST, &access_list(), XattrFlags::empty()).is_err() {
        return testing::skipped("this kernel has no access lists on this file system");
    }
    assert!(refused(&file, &[own()]).contains("getfacl"));
    // The mask is what takes it away.
    allow(&file, 0o644);
    assert!(changed_only_by(&file, &[own()]).is_ok());
}

#[test]
fn an_owner_is_one_of_those_that_are_named_or_root() {
    if own() != 0 {
        return testing::skipped("giving a file to another user needs root");
    }
    let temp = tempfile::tempdir().expect("a directory");
    let file = temp.path().join("file");
    fs::write(&file, "").expect("a file");
    chown(&file, Some(61_001), Some(61_001)).expect("chown");
    assert!(refused(&file, &[]).contains("belongs to user 61001"));
    assert!(changed_only_by(&file, &[61_001]).is_ok());
    // A group of that number is in no file of this machine: who is in it is not known.
    allow(&file, 0o664);
    assert!(refused(&file, &[61_001]).contains("group 61001 may have other members"));
}

#[test]
fn a_group_is_private_while_its_owner_alone_is_in_it() {
    let source = |accounts: &str, groups: &str| {
        let tree = Tree::new().file("/etc/passwd", accounts).file("/etc/group", groups);
        Source::from_tree("test", tree)
    };
    let accounts = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n";
    let alone = "ann:x:1000:\nbob:x:1001:\n";
    let is_ann_s = |accounts: &str, groups: &str| is_private(&source(accounts, groups), 1000, 1000);
    assert!(is_ann_s(accounts, alone));
    assert!(is_ann_s(accounts, "ann:x:1000:ann\n"));
    assert!(!is_ann_s(accounts, "ann:x:1000:ann,bob\n"), "a member");
    assert!(
        !is_ann_s(&accounts.replace("1001:1001", "1001:1000"), alone),
        "another's first group"
    );
    assert!(
        !is_ann_s(accounts, "ann:x:1000:\nalso:x:1000:bob\n"),
        "two names of one group"
    );
    assert!(
        !is_ann_s("bob:x:1001:1001::/:/bin/sh\n", alone),
        "an account that is not known"
    );
    assert!(!is_ann_s(accounts, "ann:x:1000:\n+:::\n"), "more of them elsewhere");
    assert!(
        !is_private(&source(accounts, "root:x:0:\n"), 0, 0),
        "root's group is no user's own"
    );
}

#[test]
fn a_file_system_is_its_process_s() {
    let mounts = "36 35 98:0 / / rw - ext4 /dev/a rw\n\
                  90 36 0:61 / /home/ann/mnt rw,nosuid - fuse.sshfs a:/ rw,user_id=1000,group_id=1000,allow_other\n";
    let source = Source::from_tree("test", Tree::new().file("/proc/self/mountinfo", mounts));
    assert_eq!(server(&source, rustix::fs::makedev(0, 61)), Some(1000));
    assert_eq!(server(&source, rustix::fs::makedev(98, 0)), None);
}
