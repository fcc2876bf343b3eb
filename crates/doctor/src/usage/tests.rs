//! What captured machines say about their programs.

use std::path::Path;

use host::programs::{Target, TargetError, targets};
use host::{Evidence, Snapshot, Source};
use model::{Bytes, Reading};

use super::{Database, HugetlbPages, InUse, Needs, PartKind, Step, Usage, Why, usage};

fn source(machine: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/machines/{machine}.tree"));
    Source::open(&path).expect("a machine")
}

fn all(source: &Source, word: &str) -> Result<Vec<Usage>, TargetError> {
    let snapshot = Snapshot::take(source);
    let targets = targets(source, &snapshot, word)?;
    let one = |target: &Target| {
        let alone = Reading::Known(vec![target.main.clone()]);
        usage(&Evidence::of(source, snapshot.clone(), alone), target)
    };
    Ok(targets.iter().map(one).collect())
}

fn one(machine: &str, word: &str) -> Usage {
    let mut all = all(&source(machine), word).expect("found");
    assert_eq!(all.len(), 1, "{word} on {machine}");
    all.remove(0)
}

#[test]
fn a_database_on_its_pool_has_pages_touched_and_reserved() {
    let usage = one("postgres-good", "postgres");
    assert_eq!((usage.in_use, usage.others), (InUse::Yes, 4));
    let shared = &usage.parts[0];
    assert_eq!(shared.what, PartKind::SharedMemory);
    let pages = HugetlbPages {
        page: Bytes::mib(2),
        total: 970,
        touched: Some(600),
    };
    assert_eq!(
        shared.hugetlb,
        Some(pages),
        "by the pool, which nothing else draws from"
    );
    assert_eq!(pages.reserved(), Some(370));
    assert_eq!(usage.pools[0].spare, Some(54));
    let [
        Step::Compare {
            server: Some(server), ..
        },
    ] = usage.next.as_slice()
    else {
        panic!("a comparison that starts the server: {:?}", usage.next);
    };
    assert_eq!(server.database, Database::Postgres);
    assert!(server.arguments[0].ends_with("postgres"), "{server:?}");
    assert!(usage.why.is_empty() && usage.findings.is_empty(), "{usage:?}");
}

#[test]
fn a_guest_on_a_pool_of_1g_pages_is_found_by_its_own_name() {
    for word in ["guest0", "qemu", "4711"] {
        let usage = one("pool-1g", word);
        assert_eq!((usage.name.as_str(), usage.in_use), ("guest0", InUse::Yes), "{word}");
        let pages = usage.parts[0].hugetlb.expect("hugetlb");
        assert_eq!(
            (pages.page, pages.total, pages.reserved()),
            (Bytes::gib(1), 16, Some(0))
        );
        assert_eq!(usage.next, [Step::MeasureGuest]);
    }
}

#[test]
fn a_jvm_on_transparent_pages_has_a_heap_of_its_own() {
    let usage = one("jvm-madvise", "2000");
    let heap = &usage.parts[0];
    assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::gib(8)));
    assert_eq!(usage.in_use, InUse::Yes);
    let needs = Needs {
        page: Bytes::mib(2),
        pages: 4368,
    };
    assert_eq!(heap.needs, Some(needs));
}

#[test]
fn what_could_not_be_read_is_unknown_and_not_zero() {
    let usage = one("denied", "mysql");
    assert_eq!(usage.in_use, InUse::Unknown);
    assert!(usage.parts[0].backing.unread().is_some());
}

#[test]
fn a_program_that_does_not_ask_is_told_what_to_set() {
    let usage = one("kubernetes-node", "java");
    assert_eq!(usage.in_use, InUse::No);
    assert!(matches!(usage.why[0], Why::NotAsked { .. }), "{:?}", usage.why);
    let steps = &usage.next;
    assert!(steps.iter().any(|step| matches!(step, Step::Set { .. })), "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::Explain));
}

#[test]
fn a_word_that_nothing_goes_by_names_what_runs() {
    let error = all(&source("postgres-good"), "oracel").expect_err("a misspelling");
    let text = error.to_string();
    assert!(
        text.contains("`oracel`") && text.contains("running: postgres"),
        "{text}"
    );
}

#[test]
fn a_setting_that_could_not_be_read_is_neither_set_nor_unset() {
    let tree = |name: &str| std::fs::read_to_string(name).expect("an archive");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines/postgres-good.tree");
    let tree = host::Tree::parse("made", tree(path.to_str().expect("a path")).as_bytes()).expect("a tree");
    let source = Source::from_tree("made", tree.denied("/proc/812/cmdline"));
    let usage = all(&source, "812").expect("found").remove(0);
    let setting = usage
        .asked
        .iter()
        .find(|asked| asked.setting == "huge_pages")
        .expect("asked");
    assert!(setting.value.unread().is_some(), "{setting:?}");
}
