//! What is opened below a root, by both ways of doing it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use model::Bytes;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::below;
use crate::source::walk::{self, Mounts};

fn root(path: &Path) -> OwnedFd {
    openat(
        CWD,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .expect("a root")
}

fn content(found: std::io::Result<OwnedFd>) -> Result<String, String> {
    let bytes = found
        .and_then(|found| super::for_reading(&found))
        .and_then(|file| super::whole(&file, Bytes(64)));
    let bytes = bytes.map_err(|error| error.to_string())?.ok_or("too long")?;
    Ok(String::from_utf8(bytes).expect("text"))
}

/// By openat2 and by steps, which must agree.
fn both(root: &OwnedFd, path: &str) -> Result<String, String> {
    let kernel = content(below(root, path, OFlags::PATH));
    let steps = content(walk::below(root, path, OFlags::PATH, &|_| Ok(())));
    assert_eq!(
        kernel.as_ref().ok(),
        steps.as_ref().ok(),
        "{path}: {kernel:?} {steps:?}"
    );
    steps
}

#[test]
fn links_and_dots_stay_below_the_root_however_it_is_opened() {
    let temp = tempfile::tempdir().expect("a directory");
    let top = temp.path();
    fs::create_dir_all(top.join("in/etc/deep")).expect("directories");
    fs::write(top.join("outside"), "outside").expect("a file");
    fs::write(top.join("in/etc/file"), "inside").expect("a file");
    let linked = |name: &str, target: &str| symlink(target, top.join("in").join(name)).expect("a link");
    linked("absolute", "/etc/file");
    linked("relative", "etc/deep/../file");
    linked("up", "../outside");
    linked("far", "/../../../../../outside");
    linked("out", top.join("outside").to_str().expect("plain"));
    linked("loop", "loop");
    linked("through", "/absolute");
    linked("etc/back", "../relative");
    let root = root(&top.join("in"));
    for path in [
        "/etc/file",
        "etc//./file",
        "absolute",
        "/relative",
        "through",
        "etc/back",
        "/../etc/file",
        "etc/deep/../file",
    ] {
        assert_eq!(both(&root, path), Ok("inside".to_owned()), "{path}");
    }
    for path in [
        "up",
        "far",
        "out",
        "loop",
        "/outside",
        "../outside",
        "etc/file/x",
        "none",
    ] {
        both(&root, path).expect_err(path);
    }
}

#[test]
fn only_regular_files_are_opened_and_only_so_much_is_read() {
    let temp = tempfile::tempdir().expect("a directory");
    let top = temp.path();
    let made = Command::new("mkfifo").arg(top.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).expect("a socket");
    fs::create_dir(top.join("directory")).expect("a directory");
    fs::write(top.join("long"), [b'x'; 65]).expect("a file");
    let inside = root(top);
    for (name, why) in [
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        ("directory", "directory"),
        ("long", "too long"),
    ] {
        let error = both(&inside, name).expect_err(name);
        assert!(error.contains(why), "{name}: {error}");
    }
    let machine = root(Path::new("/"));
    for name in ["dev/zero", "dev/tty"] {
        assert!(both(&machine, name).expect_err(name).contains("a device"), "{name}");
    }
    assert_eq!(
        both(&machine, "dev/null"),
        Ok(String::new()),
        "it stands for an empty file"
    );
}

#[test]
fn links_to_what_is_open_are_not_followed() {
    let machine = root(Path::new("/"));
    let temp = tempfile::NamedTempFile::new().expect("a file");
    let open = std::os::fd::AsRawFd::as_raw_fd(temp.as_file());
    for path in [
        format!("proc/self/fd/{open}"),
        "proc/self/root/etc/passwd".to_owned(),
        "proc/self/exe".to_owned(),
    ] {
        both(&machine, &path).expect_err(&path);
    }
}

#[test]
fn a_file_system_in_user_space_is_known_before_it_is_entered() {
    let mounts = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 21 0:40 / /mnt rw shared:1 - fuse.sshfs x rw\ngarbled\n";
    let parsed = Mounts::parse(mounts);
    let machine = root(Path::new("/"));
    let own = Mounts::parse(&fs::read_to_string("/proc/self/mountinfo").expect("mounts"));
    own.may_enter(&machine).expect("the root is no such thing here");
    let id = fs::read_to_string(format!(
        "/proc/self/fdinfo/{}",
        std::os::fd::AsRawFd::as_raw_fd(&machine)
    ))
    .expect("its mount");
    let id = id
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .expect("a number")
        .trim()
        .to_owned();
    let fuse = Mounts::parse(&format!("{id} 1 0:40 / / rw - fuse.sshfs x rw\n"));
    assert!(
        fuse.may_enter(&machine)
            .expect_err("refused")
            .to_string()
            .contains("fuse.sshfs")
    );
    assert!(
        Mounts::parse("").may_enter(&machine).is_err(),
        "an unknown mount is none to enter"
    );
    assert_ne!(parsed, own);
}
