//! Files below a root: whole or not at all, with their modes and owners, and never through a link.

use std::fs::{self, Permissions};
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
        root.put_file(path, &state).expect("put");
        assert_eq!(root.look(path).expect("looked"), State::File(state));
        assert_eq!(names(&temp.path().join("etc")), ["x.conf"]);
    }
    root.remove_file(path).expect("removed");
    root.remove_file(path).expect("nothing to remove");
    root.remove_file("/no/such/directory").expect("nothing to remove");
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
    root.put_file("/etc/x", &theirs).expect("put");
    let meta = fs::metadata(temp.path().join("etc/x")).expect("there");
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (65534, 65533, 0o600));
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_write_or_removal() {
    let (temp, root) = scene();
    let left = temp.path().join("etc/.x.conf.hugewise");
    for put in [true, false] {
        fs::write(&left, "half a fi").expect("left");
        match put {
            true => root.put_file("/etc/x.conf", &file("whole\n", 0o644)).expect("put"),
            false => root.remove_file("/etc/x.conf").expect("removed"),
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
        root.put_file(path, &file("ours", 0o644)).expect_err(path);
        root.make_directory(path).expect_err(path);
    }
    root.remove_file("/etc/out/precious").expect_err("a link on the way");
    for path in ["/etc/x.conf", "/etc/out", "/etc/out/precious"] {
        let State::Other(what) = root.look(path).expect("looked") else {
            panic!("{path} is a link")
        };
        assert!(what.contains("symbolic link"), "{what}");
    }
    // A rename puts a file in the link's own place, and leaves what it pointed to.
    root.put_file("/etc/x.conf", &file("ours", 0o644)).expect("put");
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
    root.put_file(&long, &file("", 0o644))
        .expect_err("the name is too long");
    assert_eq!(names(&etc), [""; 0]);
    // Written whole beside it, and then there is a directory of that name.
    fs::create_dir(etc.join("taken")).expect("a directory");
    root.put_file("/etc/taken", &file("whole\n", 0o644))
        .expect_err("the name is taken");
    assert_eq!(names(&etc), ["taken"]);
}
