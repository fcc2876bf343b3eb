//! Files below a root: whole or not at all, with their modes and owners, and never through a link.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::process::{getegid, geteuid};
use tempfile::TempDir;

use super::{FileState, Rooted, State};

fn scene() -> (TempDir, Rooted) {
    let temp = tempfile::tempdir().expect("a directory");
    fs::create_dir(temp.path().join("etc")).expect("etc");
    let root = Rooted::open(temp.path()).expect("a root");
    (temp, root)
}

fn file(text: &str, mode: u32) -> FileState {
    FileState {
        text: text.to_owned(),
        mode,
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    }
}

/// Puts a file in the place of what is there.
fn put(root: &Rooted, path: &str, file: &FileState) -> io::Result<()> {
    root.put_file(path, &root.look(path)?, file)
}

fn remove(root: &Rooted, path: &str) -> io::Result<()> {
    root.remove_file(path, &root.look(path)?)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_put_replaced_and_removed_with_its_mode() {
    let (temp, root) = scene();
    let path = "/etc/x.conf";
    assert_eq!(root.look(path).expect("looked"), State::Absent);
    for state in [file("one\n", 0o640), file("two\n", 0o400), file("", 0o644)] {
        put(&root, path, &state).expect("put");
        assert_eq!(root.look(path).expect("looked"), State::File(state));
        assert_eq!(names(&temp.path().join("etc")), ["x.conf"]);
    }
    remove(&root, path).expect("removed");
    remove(&root, path).expect("nothing to remove");
    remove(&root, "/no/such/directory").expect("nothing to remove");
    assert_eq!(names(&temp.path().join("etc")), [""; 0]);
}

#[test]
#[allow(clippy::print_stderr)]
fn an_owner_is_kept() {
    if !geteuid().is_root() {
        return testing::skipped("giving a file to another user needs root");
    }
    let (temp, root) = scene();
    let theirs = FileState {
        uid: 65534,
        gid: 65533,
        ..file("x\n", 0o600)
    };
    put(&root, "/etc/x", &theirs).expect("put");
    let meta = fs::metadata(temp.path().join("etc/x")).expect("there");
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (65534, 65533, 0o600));
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_write_or_removal() {
    let (temp, root) = scene();
    let left = temp.path().join("etc/.x.conf.hugewise");
    for is_put in [true, false] {
        fs::write(&left, "half a fi").expect("left");
        match is_put {
            true => put(&root, "/etc/x.conf", &file("whole\n", 0o644)).expect("put"),
            false => remove(&root, "/etc/x.conf").expect("removed"),
        }
        assert!(!left.exists());
    }
}

#[test]
fn no_link_is_followed_neither_out_of_the_root_nor_within() {
    let (temp, root) = scene();
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("precious"), "theirs").expect("written");
    let etc = temp.path().join("etc");
    symlink(outside.path(), etc.join("out")).expect("a link");
    symlink(outside.path().join("precious"), etc.join("x.conf")).expect("a link");
    symlink("x", etc.join("in")).expect("a link");
    for path in [
        "/etc/out/new.conf",
        "/etc/out/precious",
        "/etc/in/new.conf",
        "/../etc/y",
        "/etc/../../y",
    ] {
        put(&root, path, &file("ours", 0o644)).expect_err(path);
        root.make_directory(path).expect_err(path);
    }
    remove(&root, "/etc/out/precious").expect_err("a link on the way");
    for path in ["/etc/x.conf", "/etc/out", "/etc/out/precious"] {
        let State::Other(what) = root.look(path).expect("looked") else {
            panic!("{path} is a link")
        };
        assert!(what.contains("symbolic link"), "{what}");
    }
    put(&root, "/etc/x.conf", &file("ours", 0o644)).expect_err("a link");
    let theirs = fs::read_to_string(outside.path().join("precious")).expect("there");
    assert_eq!(
        (theirs.as_str(), names(outside.path())),
        ("theirs", vec!["precious".to_owned()])
    );
}

#[test]
fn what_is_no_text_file_is_something_else() {
    let (temp, root) = scene();
    fs::write(temp.path().join("etc/binary"), [0xff, 0xfe]).expect("written");
    fs::write(temp.path().join("etc/large"), vec![b'x'; (1 << 20) + 1]).expect("written");
    for path in ["/etc/binary", "/etc/large"] {
        assert!(matches!(root.look(path), Ok(State::Other(_))), "{path}");
    }
    assert_eq!(root.look("/etc").expect("looked"), State::Directory);
}

#[test]
fn a_directory_is_made_for_all_to_look_in_and_removed_only_when_empty() {
    let (temp, root) = scene();
    root.make_directory("/etc/a.d").expect("made");
    let made = temp.path().join("etc/a.d");
    assert_eq!(fs::metadata(&made).expect("there").mode() & 0o777, 0o755);
    fs::write(made.join("theirs"), "").expect("written");
    root.remove_directory("/etc/a.d").expect_err("not empty");
    fs::remove_file(made.join("theirs")).expect("removed");
    root.remove_directory("/etc/a.d").expect("removed");
    assert!(!made.exists());
}

#[test]
fn a_file_that_cannot_be_put_leaves_nothing_behind() {
    let (temp, root) = scene();
    let etc = temp.path().join("etc");
    fs::set_permissions(&etc, Permissions::from_mode(0o755)).expect("chmod");
    let long = format!("/etc/{}", "x".repeat(300));
    put(&root, &long, &file("", 0o644)).expect_err("the name is too long");
    assert_eq!(names(&etc), [""; 0]);
    // Written whole beside it, and then there is a directory of that name.
    fs::create_dir(etc.join("taken")).expect("a directory");
    put(&root, "/etc/taken", &file("whole\n", 0o644)).expect_err("the name is taken");
    assert_eq!(names(&etc), ["taken"]);
}

#[test]
fn what_others_put_there_at_the_last_moment_stays() {
    let (temp, root) = scene();
    let path = "/etc/x.conf";
    let there = temp.path().join("etc/x.conf");
    let planned = State::File(file("planned over\n", 0o644));
    fs::write(&there, "an administrator's\n").expect("written");
    root.put_file(path, &planned, &file("ours\n", 0o644))
        .expect_err("changed");
    root.put_file(path, &State::Absent, &file("ours\n", 0o644))
        .expect_err("there is one now");
    root.remove_file(path, &planned).expect_err("changed");
    assert_eq!(fs::read_to_string(&there).expect("there"), "an administrator's\n");
    assert_eq!(names(&temp.path().join("etc")), ["x.conf"]);
    fs::remove_file(&there).expect("removed");
    root.put_file(path, &planned, &file("ours\n", 0o644)).expect_err("gone");
    assert_eq!(names(&temp.path().join("etc")), [""; 0]);
}

#[test]
fn a_file_with_further_names_is_not_cut_off_from_them() {
    let (temp, root) = scene();
    let there = temp.path().join("etc/x.conf");
    fs::write(&there, "a\n").expect("written");
    fs::hard_link(&there, temp.path().join("etc/y.conf")).expect("linked");
    let State::Other(what) = root.look("/etc/x.conf").expect("looked") else {
        panic!("it has two names")
    };
    assert!(what.contains("2 names"), "{what}");
}

/// An access list as Linux keeps it: the owner and the group read and write, and so does user 61001 as far as the mask allows.
fn access_list() -> Vec<u8> {
    let entry = |tag: u16, rights: u16, id: u32| {
        let halves = [tag.to_le_bytes(), rights.to_le_bytes()].concat();
        [halves, id.to_le_bytes().to_vec()].concat()
    };
    let none = u32::MAX;
    let entries = [(1, 6, none), (2, 6, 61_001), (4, 6, none), (16, 6, none), (32, 0, none)];
    let entries = entries.map(|(tag, rights, id)| entry(tag, rights, id)).concat();
    [2_u32.to_le_bytes().to_vec(), entries].concat()
}

#[test]
fn a_draft_takes_no_access_list_from_its_directory_and_keeps_that_of_the_file() {
    let (temp, root) = scene();
    let etc = temp.path().join("etc");
    let set =
        |path: &Path, name: &str| rustix::fs::setxattr(path, name, &access_list(), rustix::fs::XattrFlags::empty());
    let list = |path: &Path| {
        let mut value = [0; 256];
        rustix::fs::getxattr(path, "system.posix_acl_access", &mut value[..]).ok()
    };
    fs::write(etc.join("my.cnf"), "password = 1\n").expect("written");
    fs::set_permissions(etc.join("my.cnf"), Permissions::from_mode(0o640)).expect("chmod");
    if set(&etc, "system.posix_acl_default").is_err() {
        return testing::skipped("this file system has no access lists");
    }
    put(&root, "/etc/my.cnf", &file("password = 1\nlarge-pages\n", 0o640)).expect("put");
    assert_eq!(list(&etc.join("my.cnf")), None, "61001 would read the password");
    put(&root, "/etc/new.conf", &file("new\n", 0o640)).expect("put");
    assert_eq!(list(&etc.join("new.conf")), None);
    fs::write(etc.join("listed"), "").expect("written");
    set(&etc.join("listed"), "system.posix_acl_access").expect("set");
    let before = list(&etc.join("listed"));
    let mode = fs::metadata(etc.join("listed")).expect("there").mode() & 0o777;
    put(&root, "/etc/listed", &file("x\n", mode)).expect("put");
    assert_eq!((list(&etc.join("listed")), before.is_some()), (before, true));
}
