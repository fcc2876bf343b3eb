//! Archives: what they can say, and what is said about broken ones.

use model::{Cause, Reading};
use proptest::prelude::*;

use super::{Node, Tree};
use crate::Source;

fn cause<T>(reading: &Reading<T>) -> Option<Cause> {
    reading.unread().map(|why| why.unread)
}

#[test]
fn an_archive_reads_well() {
    let tree = Tree::new()
        .line("/sys/kernel/mm/ksm/run", 0)
        .file("/proc/buddyinfo", "Node 0 \nNode 1 \n")
        .file("/proc/empty", "")
        .file("/proc/newline", "\n")
        .file("/proc/unended", "one\ntwo")
        .file("/proc/1/cmdline", b"a\0b\xff\\\x1b")
        .link("/sys/a link", "../b")
        .dir("/sys/kernel/mm/hugepages")
        .denied("/proc/1/smaps");
    insta::assert_snapshot!(tree.to_text(), @r"
    hugewise tree 1
    file /proc/1/cmdline
    |a\x00b\xff\\\x1b\
    denied /proc/1/smaps
    file /proc/buddyinfo
    |Node 0\x20
    |Node 1\x20
    file /proc/empty
    file /proc/newline
    |
    file /proc/unended
    |one
    |two\
    link /sys/a\x20link ../b
    dir /sys/kernel/mm/hugepages
    line /sys/kernel/mm/ksm/run 0
    end
    ");
    assert_eq!(Tree::parse("x", tree.to_text().as_bytes()), Ok(tree));
}

#[test]
fn a_broken_archive_is_named_by_file_and_line() {
    for (text, place, why) in [
        ("", "m.tree:1", "starts with the line `hugewise tree 1`"),
        ("MemTotal: 1 kB\n", "m.tree:1", "starts with"),
        ("hugewise tree 1\nline /a 1\n", "m.tree:3", "stops before its `end`"),
        ("hugewise tree 1\n|x\nend\n", "m.tree:2", "without a `file` line"),
        (
            "hugewise tree 1\nfile /a\n|x\\\n|y\nend\n",
            "m.tree:4",
            "without a newline",
        ),
        ("hugewise tree 1\nfile /a\n|\\q\nend\n", "m.tree:3", "after a backslash"),
        ("hugewise tree 1\nfile /a\n|\\xg0\nend\n", "m.tree:3", "two hex digits"),
        ("hugewise tree 1\nline /a\nend\n", "m.tree:2", "needs text"),
        ("hugewise tree 1\ndir /a b\nend\n", "m.tree:2", "nothing after the path"),
        ("hugewise tree 1\nfoo /a\nend\n", "m.tree:2", "no kind of entry"),
        ("hugewise tree 1\ndir a\nend\n", "m.tree:2", "not a plain absolute path"),
        (
            "hugewise tree 1\ndir /a/../b\nend\n",
            "m.tree:2",
            "not a plain absolute path",
        ),
        ("hugewise tree 1\ndir /a\ndir /a\nend\n", "m.tree:3", "given twice"),
        ("hugewise tree 1\nend\ndir /a\n", "m.tree:3", "follows the `end`"),
    ] {
        let error = Tree::parse("m.tree", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("garbled: {place}: ")), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn links_are_followed_and_never_lead_out() {
    let tree = Tree::new()
        .line("/sys/devices/x/value", 7)
        .link("/sys/class/x", "../devices/x")
        .link("/sys/absolute", "/sys/devices")
        .link("/sys/out", "../../../../sys/devices")
        .link("/sys/loop", "loop");
    let source = Source::from_tree("test", tree);
    for path in ["/sys/class/x/value", "/sys/absolute/x/value", "/sys/out/x/value"] {
        assert_eq!(source.number(path), Reading::Known(7), "{path}");
    }
    assert_eq!(source.list("/sys/absolute"), Reading::Known(vec!["x".to_owned()]));
    assert_eq!(cause(&source.number("/sys/loop")), Some(Cause::Failed));
    assert_eq!(source.link("/sys/class/x"), Reading::Known("../devices/x".to_owned()));
    assert_eq!(cause(&source.link("/sys/devices/x/value")), Some(Cause::Failed));
}

#[test]
fn what_stands_below_a_refusal_is_refused() {
    let mut tree = Tree::new().denied("/proc/1").dir("/sys/empty").line("/sys/file", 1);
    tree.insert("/proc/2/stat", Node::Failed("the process ended".to_owned()));
    let source = Source::from_tree("test", tree);
    assert_eq!(cause(&source.text("/proc/1/status")), Some(Cause::Denied));
    assert_eq!(cause(&source.list("/proc/1")), Some(Cause::Denied));
    assert_eq!(cause(&source.text("/proc/2/stat")), Some(Cause::Failed));
    assert_eq!(cause(&source.text("/proc/3/stat")), Some(Cause::Absent));
    assert_eq!(cause(&source.text("/sys/file/x")), Some(Cause::Absent));
    assert_eq!(cause(&source.text("/sys/empty")), Some(Cause::Failed));
    assert_eq!(source.list("/sys/empty"), Reading::Known(Vec::new()));
    assert_eq!(
        source.list("/"),
        Reading::Known(vec!["proc".to_owned(), "sys".to_owned()])
    );
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Node::File),
        "[a-z \\\\\n]{0,20}".prop_map(|text| Node::File(text.into_bytes())),
        ".{0,12}".prop_map(Node::Link),
        Just(Node::Dir),
        Just(Node::Denied),
        ".{0,12}".prop_map(Node::Failed),
    ]
}

proptest! {
    #[test]
    fn every_tree_survives_its_text(nodes in prop::collection::vec(("(/[a-c .\\\\\n]{1,4}){1,3}", node()), 0..12)) {
        let mut tree = Tree::new();
        for (path, node) in nodes {
            tree.insert(&path, node);
        }
        prop_assert_eq!(Tree::parse("x", tree.to_text().as_bytes()), Ok(tree));
    }

    #[test]
    fn any_bytes_give_a_tree_or_a_named_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = [b"hugewise tree 1\n".as_slice(), &bytes].concat();
        if let Err(error) = Tree::parse("x", &text) {
            prop_assert!(error.line > 0);
            prop_assert!(error.to_string().starts_with("garbled: x:"));
        }
    }
}

#[test]
fn an_archive_of_endless_paths_is_refused() {
    let parse = |entries: &str| Tree::parse("made", format!("hugewise tree 1\n{entries}end\n").as_bytes());
    let long = format!("/{}", "x".repeat(4096));
    let why = parse(&format!("dir {long}\n")).expect_err("too long").to_string();
    assert!(why.contains("made:2: a path has at most 4096 bytes"), "{why}");
    let many: String = (0..=1 << 20).map(|number| format!("dir /{number}\n")).collect();
    let why = parse(&many).expect_err("too many").to_string();
    assert!(
        why.contains("made:1048578: an archive has at most 1048576 paths"),
        "{why}"
    );
}
