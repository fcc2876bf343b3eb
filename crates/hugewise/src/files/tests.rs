//! Files are replaced whole, whatever they are, and whatever stops their writer.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};

use super::draft::{Draft, is_temporary};
use super::place::{Found, find};
use super::{Access, Existing, Target};

fn put(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    Target::open(path, access)?.put(bytes, Existing::Replace).map(drop)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("there").mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_file_is_made_and_replaced_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    for text in ["old", "a longer one", "new"] {
        put(&path, text.as_bytes(), Access::Usual).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), text);
    }
    assert_eq!(names(folder.path()), ["result.json"]);
}

#[test]
fn the_handle_given_back_is_of_the_new_file_at_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut target = Target::open(&path, Access::Usual).expect("opened");
    let file = target.put(b"one\n", Existing::Replace).expect("written");
    file.expect("a file").write_all(b"two\n").expect("added");
    assert_eq!(fs::read_to_string(&path).expect("read"), "one\ntwo\n");
}

#[test]
fn opening_a_target_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    drop(Target::open(&path, Access::Usual).expect("opened"));
    assert!(names(folder.path()).is_empty());
    fs::write(&path, "old").expect("written");
    drop(Target::open(&path, Access::Usual).expect("opened"));
    assert_eq!(fs::read_to_string(&path).expect("read"), "old");
}

#[test]
fn a_replaced_file_keeps_its_mode_and_a_private_one_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    put(&path, b"", Access::Private).expect("written");
    assert_eq!(mode(&path), 0o600);
    for kept in [0o640, 0o600, 0o664] {
        fs::set_permissions(&path, Permissions::from_mode(kept)).expect("changed");
        put(&path, b"new", Access::Usual).expect("written");
        assert_eq!(mode(&path), kept);
    }
    put(&path, b"secret", Access::Private).expect("written");
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_private_file_is_private_before_it_holds_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, _) = find(&folder.path().join("m.tree")).expect("a place");
    let _draft = Draft::begin(&place, Access::Private).expect("begun");
    let [name] = names(folder.path()).try_into().expect("one file");
    assert_eq!(mode(&folder.path().join(name)), 0o600);
}

#[test]
fn root_leaves_a_file_with_its_owner() {
    if !is_root() {
        return testing::skipped("giving a file to another user needs root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    fs::write(&path, "old").expect("written");
    chown(&path, Some(65534), Some(65534)).expect("given away");
    put(&path, b"new", Access::Usual).expect("written");
    let meta = fs::metadata(&path).expect("there");
    assert_eq!((meta.uid(), meta.gid()), (65534, 65534));
}

type Step<'a> = &'a dyn Fn(&mut Draft<'_>) -> io::Result<()>;

/// How far a writer came before it was killed.
fn killed_after(step: usize, path: &Path) {
    let (place, _) = find(path).expect("a place");
    let mut draft = Draft::begin(&place, Access::Usual).expect("begun");
    let steps: [Step; 4] = [
        &|draft| draft.file.write_all(b"new and "),
        &|draft| draft.file.write_all(b"whole"),
        &|draft| draft.sync(),
        &|draft| draft.rename(Existing::Replace),
    ];
    for take in &steps[..step] {
        take(&mut draft).expect("taken");
    }
    draft.abandon();
}

#[test]
fn a_writer_killed_after_any_step_leaves_the_old_file_or_the_new_and_the_next_write_clears_up() {
    for step in 0..=4 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.json");
        fs::write(&path, "old and whole").expect("written");
        killed_after(step, &path);
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text, if step < 4 { "old and whole" } else { "new and whole" });
        let left = names(folder.path());
        assert_eq!(left.len(), if step < 4 { 2 } else { 1 }, "{left:?}");
        let is_known = |name: &&String| is_temporary(name.as_bytes(), OsStr::new("result.json"));
        assert_eq!(left.iter().filter(is_known).count(), left.len() - 1, "{left:?}");
        // A child that another test starts has the lock too, until its exec.
        let clears_up = |_| {
            put(&path, b"next", Access::Usual).expect("written");
            names(folder.path()) == ["result.json"] || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }
        };
        assert!((0..500).any(clears_up), "{:?}", names(folder.path()));
    }
}

#[test]
fn a_sweep_takes_neither_what_a_living_writer_has_nor_what_others_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let (place, _) = find(&path).expect("a place");
    let living = Draft::begin(&place, Access::Usual).expect("begun");
    let others = [
        ".a.hugewise",
        ".a.0123.hugewise",
        ".ab.0123456789abcdef.hugewise",
        "a.0123456789abcdef.hugewise",
    ];
    for name in others {
        fs::write(folder.path().join(name), "").expect("written");
    }
    let pipe = ".a.0123456789abcdef.hugewise";
    rustix::fs::mknodat(
        CWD,
        folder.path().join(pipe),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .expect("made");
    put(&path, b"new", Access::Usual).expect("written");
    assert_eq!(names(folder.path()).len(), others.len() + 3);
    drop(living);
    assert_eq!(names(folder.path()).len(), others.len() + 2);
}

#[test]
fn two_writers_at_once_leave_one_of_both_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::thread::scope(|scope| {
        for byte in [b'a', b'b'] {
            let path = &path;
            scope.spawn(move || (0..50).for_each(|_| put(path, &[byte; 9000], Access::Usual).expect("written")));
        }
    });
    let text = fs::read(&path).expect("read");
    assert!(text == [b'a'; 9000] || text == [b'b'; 9000]);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn what_must_not_be_there_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let mut target = Target::open(&path, Access::Private).expect("opened");
    fs::write(&path, "somebody was faster").expect("written");
    let error = target.put(b"new", Existing::Refuse).expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&path).expect("read"), "somebody was faster");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_link_is_written_through_and_stays_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().join("real");
    fs::create_dir(&real).expect("made");
    let (link, chain) = (folder.path().join("link"), folder.path().join("chain"));
    symlink("real/file", &link).expect("linked");
    symlink("link", &chain).expect("linked");
    for text in ["made through it", "replaced through it"] {
        put(&chain, text.as_bytes(), Access::Usual).expect("written");
        assert_eq!(fs::read_to_string(real.join("file")).expect("read"), text);
    }
    assert_eq!((names(&real), names(folder.path()).len()), (vec!["file".to_owned()], 3));
    let round = folder.path().join("round");
    symlink("round", &round).expect("linked");
    assert!(put(&round, b"", Access::Usual).is_err());
}

#[test]
fn a_link_or_file_that_another_user_planted_is_refused() {
    if !is_root() {
        return testing::skipped("giving a link to another user needs root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (link, file) = (folder.path().join("link"), folder.path().join("file"));
    let victim = folder.path().join("victim");
    fs::write(&victim, "victim").expect("written");
    symlink(&victim, &link).expect("linked");
    fs::write(&file, "file").expect("written");
    for path in [&link, &file] {
        std::os::unix::fs::lchown(path, Some(65534), Some(65534)).expect("given away");
    }
    for shared in [0o1777, 0o777, 0o1770] {
        fs::set_permissions(folder.path(), Permissions::from_mode(shared)).expect("changed");
        for path in [&link, &file] {
            let error = put(path, b"new", Access::Usual).expect_err("refused");
            assert!(
                error.to_string().contains("belongs to user 65534"),
                "{shared:o}: {error}"
            );
        }
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("changed");
    put(&link, b"new", Access::Usual).expect("in a directory of one's own it is followed");
    assert_eq!(fs::read_to_string(&victim).expect("read"), "new");
}

#[test]
fn root_follows_no_link_in_another_user_s_directory() {
    if !is_root() {
        return testing::skipped("giving a directory to another user needs root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("changed");
    let theirs = folder.path().join("theirs");
    let (victims, victim) = (folder.path().join("victims"), folder.path().join("victims/victim"));
    fs::create_dir(&theirs).expect("made");
    fs::create_dir(&victims).expect("made");
    fs::write(&victim, "victim").expect("written");
    symlink(&victim, theirs.join("out")).expect("linked");
    symlink(folder.path().join("victims/new"), theirs.join("new")).expect("linked");
    symlink(&victims, theirs.join("way")).expect("linked");
    for path in [
        theirs.clone(),
        theirs.join("out"),
        theirs.join("new"),
        theirs.join("way"),
    ] {
        std::os::unix::fs::lchown(path, Some(61_001), Some(61_001)).expect("given away");
    }
    for name in ["out", "new", "way/victim", "way/other"] {
        let error = put(&theirs.join(name), b"new", Access::Usual).expect_err(name);
        assert!(error.to_string().contains("belongs to user 61001"), "{name}: {error}");
    }
    assert_eq!(
        (fs::read_to_string(&victim).expect("read"), names(&victims)),
        ("victim".to_owned(), vec!["victim".to_owned()])
    );
    put(&theirs.join("plain"), b"new", Access::Usual).expect("a file of that folder is no way out of it");
}

#[test]
fn devices_and_pipes_are_written_straight() {
    put(Path::new("/dev/null"), b"gone", Access::Usual).expect("written");
    let full = put(Path::new("/dev/full"), b"too much", Access::Usual).expect_err("full");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    put(Path::new(&path), b"through", Access::Usual).expect("written");
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("read");
    assert_eq!(text, "through");
}

#[test]
fn an_open_file_named_by_its_descriptor_is_added_to_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    fs::write(&path, "before\n").expect("written");
    let file = fs::OpenOptions::new().append(true).open(&path).expect("opened");
    let inode = file.metadata().expect("there").ino();
    let named = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    put(Path::new(&named), b"after\n", Access::Usual).expect("written");
    assert_eq!(fs::read_to_string(&path).expect("read"), "before\nafter\n");
    assert_eq!(fs::metadata(&path).expect("there").ino(), inode);
}

#[test]
fn what_cannot_be_a_file_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().to_str().expect("a name");
    for path in [
        here.to_owned(),
        format!("{here}/"),
        format!("{here}/new/"),
        format!("{here}/.."),
        format!("{here}/none/file"),
        String::new(),
    ] {
        assert!(Target::open(Path::new(&path), Access::Usual).is_err(), "{path}");
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_name_of_255_bytes_can_be_written_and_cleared_up_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(OsStr::from_bytes(&[b'n'; 255]));
    killed_after(2, &path);
    assert_eq!(names(folder.path()).len(), 1);
    put(&path, b"new", Access::Usual).expect("written");
    assert_eq!(names(folder.path()).len(), 1);
    assert!(matches!(find(&path), Ok((_, Found::File))));
}
