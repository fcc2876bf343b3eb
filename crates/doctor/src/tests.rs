//! The engine, and every machine of fixtures/machines under all rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{available_parallelism, scope};

use host::{Node, Source, Tree};
use model::findings::{Diagnosis, Severity};
use programs::Evidence;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use super::machines::{Verdict, anonymous, machine, partly, pool, process};
use super::{explain, judge, rules};

fn archives() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let entries = fs::read_dir(directory).expect("fixtures/machines");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut archives: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "tree"))
        .collect();
    archives.sort();
    archives
}

/// The machines of public cases.
fn cases() -> Vec<PathBuf> {
    let below = |directory: PathBuf| {
        fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    let files = below(root).filter(|path| path.is_dir()).flat_map(below);
    let mut trees: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|kind| kind == "tree"))
        .collect();
    trees.sort();
    trees
}

fn tree(path: &Path) -> Tree {
    let bytes = fs::read(path).expect("an archive");
    Tree::parse(&path.display().to_string(), &bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn diagnosis(tree: Tree) -> Diagnosis {
    judge(&Evidence::gather(&Source::from_tree("test", tree)))
}

#[test]
fn every_rule_says_all_that_a_reader_needs() {
    let mut seen = BTreeSet::new();
    for rule in rules() {
        assert!(
            seen.insert(rule.id) && seen.insert(rule.name),
            "{rule:?} is there twice"
        );
        assert!(
            rule.text.len() > 150 && rule.text.ends_with('.'),
            "{rule:?}: {}",
            rule.text
        );
        assert!(!rule.text.contains("  "), "{rule:?} has doubled blanks");
        assert!(rule.link.starts_with("https://") && !rule.holds.is_empty(), "{rule:?}");
        assert_eq!(
            explain(&rule.id.to_lowercase()).map(|found| found.name),
            Some(rule.name)
        );
        assert_eq!(explain(rule.name).map(|found| found.id), Some(rule.id));
    }
    assert!(explain("Z99").is_none());
    let ids: Vec<&str> = rules().map(|rule| rule.id).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(ids, sorted);
}

/// The rules of the first release, all of which must exist.
const FIRST_SET: &str = "A01 A02 A03 A04 A05 A06 A07 A08 A09 A10 A12 A13 A14 A15 A18 A20 A23 B01 B02 B03 B04 B05 B06 C01 C02 C03 \
                         C04 C05 C09 D01 D02 D03 D05 D06 D08 D09 D10 D11 D12 D14 D15 D16 D18 D21 D22 D23 D24 D25 D27 D32 E01 E02 \
                         E05 E06 E07 E08 F01 F03 G01 G02 G03 G06 G07";

/// The text of all tests of rules, without white space.
fn tests_of_rules(directory: &Path) -> String {
    let entries = fs::read_dir(directory)
        .expect("sources")
        .map(|entry| entry.expect("an entry").path());
    let mut text = String::new();
    for path in entries {
        if path.is_dir() {
            text += &tests_of_rules(&path);
        } else if ["tests.rs", "files_tests.rs"].iter().any(|name| path.ends_with(name)) {
            text.extend(fs::read_to_string(&path).expect("a source").split_whitespace());
        }
    }
    text
}

#[test]
fn every_rule_is_shown_where_it_fires_and_where_it_must_not() {
    let tests = tests_of_rules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    // Of D24 the evidence is a journal, which is in no tree; a text without a line that L01 knows is no log. Their tests say both in words of their own.
    let otherwise = ["D24", "L01"];
    let lacks = |word: &'static str| {
        let shown = |id: &str| tests.contains(&format!("{word}(\"{id}\",")) || otherwise.contains(&id);
        rules().map(|rule| rule.id).filter(|id| !shown(id)).collect::<Vec<_>>()
    };
    assert_eq!(
        lacks("found"),
        [""; 0],
        "rules without a test in which they find something"
    );
    assert_eq!(lacks("clear"), [""; 0], "rules without a test in which they must not");
}

#[test]
fn the_first_set_is_complete() {
    let missing: Vec<&str> = FIRST_SET
        .split_whitespace()
        .filter(|id| explain(id).is_none())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// bitnami-docker-redis#148: `Read-only file system`.
#[test]
fn in_a_container_settings_are_the_host_s() {
    let short = || {
        let asked = machine().file("/etc/sysctl.d/1.conf", "vm.nr_hugepages=900\n");
        pool(asked, "2048kB", 512, 512, 0)
    };
    let finding = |tree: Tree| diagnosis(tree).of("A01").next().cloned().expect("A01");
    assert!(finding(short()).plan.is_some());
    let mounts = "sysfs /sys sysfs ro,nosuid 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\n";
    let inside = finding(short().file("/proc/self/mounts", mounts));
    let of_host = |fix: &String| fix.starts_with("on the host (/sys is read-only here): ");
    assert!(inside.plan.is_none() && inside.fix.iter().all(of_host), "{inside:?}");
}

#[test]
fn the_worst_comes_first_and_findings_carry_their_rule() {
    let asked = machine().file("/etc/sysctl.d/1.conf", "vm.nr_hugepages=900\n");
    let diagnosis = diagnosis(pool(asked, "2048kB", 512, 512, 0));
    let order: Vec<Severity> = diagnosis.findings.iter().map(|finding| finding.severity).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
    let first = &diagnosis.findings[0];
    assert_eq!(
        (first.id.as_str(), first.name.as_str(), first.severity),
        ("A01", "pool-short", Severity::Error)
    );
    // What is idle there is a part of what is missing.
    assert_eq!(diagnosis.of("A02").count(), 0);
    assert!(diagnosis.reaches(Severity::Error));
}

#[test]
fn one_process_that_cannot_be_looked_at_leaves_the_others_judged() {
    let with_denied = |tree: Tree| {
        process(40, "secret")
            .area(anonymous(100))
            .on(tree)
            .denied("/proc/40/environ")
            .denied("/proc/40/cmdline")
    };
    for id in ["B01", "D15", "D16", "D18"] {
        partly(
            id,
            with_denied(pool(machine(), "2048kB", 4, 0, 0)),
            "1 of 2 could not be read, such as denied: /proc/40",
        );
    }
    let told = process(41, "solver")
        .env("GLIBC_TUNABLES=glibc.malloc.hugetlb=2")
        .area(anonymous(100));
    let diagnosis = diagnosis(with_denied(told.on(machine())));
    assert_eq!(
        (diagnosis.of("D15").count(), diagnosis.partly.len()),
        (1, 4),
        "{diagnosis:#?}"
    );
}

#[test]
fn a_machine_of_which_nothing_can_be_read_is_not_judged_at_all() {
    for path in archives() {
        let mut unreadable = tree(&path);
        let files: Vec<String> = unreadable.iter().map(|(path, _)| path.to_owned()).collect();
        for file in files {
            unreadable.insert(&file, Node::Denied);
        }
        let diagnosis = diagnosis(unreadable);
        assert_eq!(diagnosis.findings, [], "{path:?}");
        let judged: BTreeSet<&str> = rules().map(|rule| rule.id).collect();
        let not: BTreeSet<&str> = diagnosis
            .not_judged
            .iter()
            .map(|not_judged| not_judged.id.as_str())
            .collect();
        assert_eq!(
            not, judged,
            "{path:?}: some rules are clear without having read anything"
        );
    }
    assert_eq!(diagnosis(Tree::new()).not_judged.len(), rules().count());
}

/// A path without its numbers: files of one sort, of all processes, nodes and sizes.
fn sort_of(path: &str) -> String {
    path.chars()
        .map(|c| if c.is_ascii_digit() { '#' } else { c })
        .collect::<String>()
        .split('/')
        .map(|part| if part.starts_with('#') { "#" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

/// Rules that find something on a machine, and nothing wrong where the files of one sort may not be read.
fn calm_without(path: &Path) -> Vec<String> {
    let whole = tree(path);
    let findings = diagnosis(whole.clone()).findings;
    let found: BTreeSet<&str> = findings.iter().map(|found| found.id.as_str()).collect();
    let is_file = |node: &Node| matches!(node, Node::File(_));
    let files = || whole.iter().filter(|(_, node)| is_file(node));
    let sorts: BTreeSet<String> = files().map(|(path, _)| sort_of(path)).collect();
    let without = |sort: String| {
        let mut dark = whole.clone();
        for (path, _) in files().filter(|(path, _)| sort_of(path) == sort) {
            dark.insert(path, Node::Denied);
        }
        let evidence = Evidence::gather(&Source::from_tree("test", dark));
        let calm = |id: &&str| explain(id).expect(id).judge(&evidence) == Verdict::Clear;
        let calm = found.iter().copied().filter(calm);
        calm.map(|id| format!("{id} without {sort}")).collect::<Vec<_>>()
    };
    sorts.into_iter().flat_map(without).collect()
}

/// "Could not be read" is an answer, never "nothing wrong": where a rule finds something, and the files of one sort may no longer be
/// read, it still finds it, or says that it could not be judged.
#[test]
fn what_may_not_be_read_is_never_called_well() {
    let machines: Vec<PathBuf> = archives().into_iter().chain(cases()).collect();
    // As many as are free take turns: large machines lie beside each other.
    let threads = available_parallelism().map_or(1, usize::from);
    let every = |first: usize| machines.iter().skip(first).step_by(threads);
    let calm: BTreeSet<String> = scope(|scope| {
        let of_one = |first| scope.spawn(move || every(first).flat_map(|path| calm_without(path)).collect::<Vec<_>>());
        let all: Vec<_> = (0..threads).map(of_one).collect();
        all.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    });
    assert!(
        calm.is_empty(),
        "rules that found nothing wrong in what they could not read: {calm:#?}"
    );
}

#[test]
fn machines_that_are_well_configured_are_left_alone() {
    let good = ["postgres-good", "desktop", "jvm-madvise", "kubernetes-node"];
    for name in good {
        let path = archives()
            .into_iter()
            .find(|path| path.file_stem().is_some_and(|stem| stem == name))
            .unwrap_or_else(|| panic!("{name}"));
        let diagnosis = diagnosis(tree(&path));
        let loud: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity >= Severity::Warning)
            .collect();
        assert!(loud.is_empty(), "{name}: {loud:#?}");
        // Quiet because all is well, not because nothing could be read.
        let excused = ["D24", "C06", "F02", "G04", "G05", "G06", "G07", "L01"];
        let blind: Vec<_> = diagnosis
            .not_judged
            .iter()
            .filter(|not| !excused.contains(&not.id.as_str()))
            .collect();
        assert!(blind.is_empty(), "{name}: {blind:#?}");
    }
}

#[test]
fn captured_machines_are_judged_without_a_panic_and_without_garbled_files() {
    for path in archives() {
        let diagnosis = diagnosis(tree(&path));
        let garbled: Vec<_> = diagnosis
            .not_judged
            .iter()
            .filter(|not| not.reason.starts_with("garbled"))
            .collect();
        assert!(garbled.is_empty(), "{path:?}: {garbled:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a file holds, the rules answer: no panic, and nothing found without evidence.
    #[test]
    fn changed_files_upset_no_rule(machine: Index, file: Index, at: Index, byte: u8, cut: bool) {
        let archives = archives();
        let mut changed = tree(&archives[machine.index(archives.len())]);
        let files: Vec<(String, Vec<u8>)> = changed
            .iter()
            .filter_map(|(path, node)| match node {
                Node::File(bytes) if !bytes.is_empty() => Some((path.to_owned(), bytes.clone())),
                _ => None,
            })
            .collect();
        let (path, mut bytes) = files[file.index(files.len())].clone();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte };
        changed.insert(&path, Node::File(bytes));
        for finding in diagnosis(changed).findings {
            prop_assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:?}");
        }
    }

    /// Numbers at the ends of their range overflow nowhere.
    #[test]
    fn extreme_numbers_upset_no_rule(machine: Index, file: Index, number in prop_oneof![Just(u64::MAX), Just(u64::MAX / 1024), Just(0)]) {
        let archives = archives();
        let mut changed = tree(&archives[machine.index(archives.len())]);
        let files: Vec<(String, String)> = changed
            .iter()
            .filter_map(|(path, node)| match node {
                Node::File(bytes) => Some((path.to_owned(), String::from_utf8_lossy(bytes).into_owned())),
                _ => None,
            })
            .collect();
        let (path, text) = files[file.index(files.len())].clone();
        let is_number = |word: &&str| word.parse::<u64>().is_ok();
        let words: Vec<String> = text.split(' ').map(|word| match is_number(&word.trim()) {
            true => word.replace(word.trim(), &number.to_string()),
            false => word.to_owned(),
        }).collect();
        changed.insert(&path, Node::File(words.join(" ").into_bytes()));
        diagnosis(changed);
    }
}
