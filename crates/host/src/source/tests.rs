//! The three kinds of source answer alike.

use std::fs;
use std::os::unix::fs::symlink;

use model::{Bytes, Cause, Reading};

use super::{CPUID, PAGE_SIZE, Source, SourceError};
use crate::Tree;

fn cause<T>(reading: &Reading<T>) -> Option<Cause> {
    reading.unread().map(|why| why.unread)
}

#[test]
fn a_directory_and_an_archive_answer_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    fs::create_dir_all(root.join("proc/sys/vm")).expect("proc");
    fs::write(root.join("proc/sys/vm/swappiness"), "60\n").expect("a file");
    fs::write(root.join("proc/bad"), b"good\n\xff\n").expect("a file");
    symlink("sys/vm", root.join("proc/link")).expect("a link");
    symlink("/proc/sys", root.join("proc/absolute")).expect("a link");
    let tree = Tree::new()
        .line("/proc/sys/vm/swappiness", 60)
        .file("/proc/bad", b"good\n\xff\n")
        .link("/proc/link", "sys/vm")
        .link("/proc/absolute", "/proc/sys");
    let archive = root.join("machine.tree");
    fs::write(&archive, tree.to_text()).expect("an archive");

    for path in [root, &archive] {
        let source = Source::open(path).expect("a source");
        assert!(!source.is_live());
        assert_eq!(source.name(), path.display().to_string());
        assert_eq!(source.number("/proc/sys/vm/swappiness"), Reading::Known(60));
        assert_eq!(source.number("/proc/link/swappiness"), Reading::Known(60));
        assert_eq!(source.number("/proc/absolute/vm/swappiness"), Reading::Known(60));
        assert_eq!(source.link("/proc/link"), Reading::Known("sys/vm".to_owned()));
        assert_eq!(source.real("/proc/link"), "/proc/sys/vm");
        assert_eq!(
            (source.real("/proc/bad"), source.real("/none")),
            ("/proc/bad".to_owned(), "/none".to_owned())
        );
        assert_eq!(source.list("/proc/sys"), Reading::Known(vec!["vm".to_owned()]));
        assert_eq!(cause(&source.text("/proc/none")), Some(Cause::Absent));
        assert_eq!(cause(&source.list("/proc/none")), Some(Cause::Absent));
        assert_eq!(cause(&source.list("/proc/bad")), Some(Cause::Absent));
        let bad = source.text("/proc/bad");
        let bad = bad.unread().expect("garbled");
        assert_eq!((bad.unread, bad.place.as_str()), (Cause::Garbled, "/proc/bad:2"));
        let large = source.bytes_within("/proc/bad", Bytes(3));
        assert_eq!(cause(&large), Some(Cause::Failed));
    }
}

#[test]
fn the_directories_that_a_process_sees_are_listed_but_not_those_of_the_kernel() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["b.cnf", "a.cnf"] {
        fs::write(directory.path().join(name), "").expect("a file");
    }
    let below = |path: &str| format!("/proc/{}/root{path}", std::process::id());
    let source = Source::live();
    let listed = source.list(&below(&directory.path().display().to_string()));
    assert_eq!(listed, Reading::Known(vec!["a.cnf".to_owned(), "b.cnf".to_owned()]));
    assert_eq!(cause(&source.list(&below("/nowhere"))), Some(Cause::Absent));
    assert_eq!(cause(&source.list(&below("/proc/self"))), Some(Cause::Failed));
    let file = directory.path().join("a.cnf").display().to_string();
    assert!(source.list(&below(&file)).known().is_none(), "a file is no directory");
}

#[test]
fn no_link_leads_out_of_a_directory() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret"), "7\n").expect("a file");
    let inside = tempfile::tempdir().expect("a directory");
    fs::create_dir(inside.path().join("proc")).expect("proc");
    symlink(outside.path().join("secret"), inside.path().join("proc/absolute")).expect("a link");
    let up = "../".repeat(20) + outside.path().to_str().expect("UTF-8").trim_start_matches('/') + "/secret";
    symlink(&up, inside.path().join("proc/relative")).expect("a link");

    let source = Source::open(inside.path()).expect("a source");
    for path in ["/proc/absolute", "/proc/relative", "/proc/../../../../etc/passwd"] {
        assert_eq!(cause(&source.text(path)), Some(Cause::Absent), "{path}");
    }
}

#[test]
fn a_value_of_the_wrong_form_is_garbled_by_path_and_line() {
    let tree = Tree::new().line("/sys/number", "many").line("/sys/switch", 2);
    let source = Source::from_tree("test", tree);
    let number = source.number("/sys/number");
    assert_eq!(
        number.to_string(),
        "(garbled: /sys/number:1: `many` is not a whole number)"
    );
    assert_eq!(cause(&source.switch("/sys/switch")), Some(Cause::Garbled));
}

#[test]
fn what_is_no_machine_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let nothing = Source::open(directory.path()).expect_err("no proc");
    assert!(matches!(nothing, SourceError::NotAMachine { .. }), "{nothing}");
    let missing = Source::open(&directory.path().join("none")).expect_err("no file");
    assert!(missing.to_string().contains(".tree"), "{missing}");
    let archive = directory.path().join("x.tree");
    fs::write(&archive, "hugewise tree 1\nline /a 1\n").expect("a file");
    let cut = Source::open(&archive).expect_err("cut short").to_string();
    assert!(cut.starts_with(&format!("garbled: {}:3: ", archive.display())), "{cut}");
}

#[test]
fn the_running_machine_has_the_synthetic_files_too() {
    let source = Source::live();
    assert!(source.is_live());
    let page: u64 = *source.number(PAGE_SIZE).known().expect("a page size");
    assert!(page.is_power_of_two());
    let names = source.list("/hugewise");
    assert_eq!(names.known().map(Vec::len), Some(4));
    assert_eq!(cause(&source.text("/hugewise/none")), Some(Cause::Absent));
    assert!(
        source
            .text(CPUID)
            .known()
            .is_some_and(|text| text.starts_with("00000000.0 "))
    );
}
