//! The invariants of ARCHITECTURE.md that can be read off the source tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which crates of ours each crate may use, tests aside.
const ARROWS: [(&str, &[&str]); 19] = [
    ("model", &[]),
    ("host", &["model"]),
    ("chase", &["model", "host"]),
    ("vm", &["model", "chase"]),
    ("preload-abi", &[]),
    ("preload", &["preload-abi"]),
    ("stats", &["model"]),
    ("measure", &["model", "stats", "host", "chase", "vm"]),
    ("process", &["model", "host", "chase"]),
    ("placement", &["model", "stats", "host", "chase", "process"]),
    (
        "compare",
        &["model", "stats", "host", "chase", "process", "placement", "preload-abi"],
    ),
    ("sim", &["model"]),
    ("programs", &["model", "host"]),
    ("doctor", &["model", "host", "programs"]),
    ("plan", &["model", "host", "programs"]),
    ("settings", &["model", "host"]),
    (
        "hugewise",
        &[
            "model",
            "stats",
            "host",
            "measure",
            "process",
            "compare",
            "placement",
            "programs",
            "sim",
            "doctor",
            "plan",
            "settings",
        ],
    ),
    // Of tests alone.
    ("testing", &[]),
    (
        "parsers",
        &[
            "model", "host", "programs", "vm", "compare", "sim", "doctor", "plan", "process", "settings", "hugewise",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

fn manifest(name: &str) -> toml::Table {
    let path = root().join("crates").join(name).join("Cargo.toml");
    std::fs::read_to_string(&path)
        .expect("a manifest")
        .parse()
        .expect("TOML")
}

fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = manifest(name);
    manifest
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

fn sources(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            found.insert(path, text);
        }
    }
}

fn sources_of(name: &str) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    sources(&root().join("crates").join(name).join("src"), &mut found);
    assert!(!found.is_empty());
    found
}

fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("crates")).expect("crates");
    entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The code outside of `#[cfg(test)] mod tests { .. }`, which stands last in a file of this house, and without comments.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn offenders(name: &str, forbidden: &[&str], allowed: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut offenders = Vec::new();
    for (path, text) in sources_of(name) {
        if is_test(&path) || allowed(&path) {
            continue;
        }
        let code = code(&text);
        for word in forbidden.iter().filter(|word| code.contains(**word)) {
            offenders.push(format!("{}: {word}", path.display()));
        }
    }
    offenders
}

#[test]
fn arrows_only_go_down() {
    let ours: BTreeSet<String> = crates().into_iter().collect();
    let known: BTreeSet<String> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        ours, known,
        "a new crate needs its line in ARROWS and in ARCHITECTURE.md"
    );
    for (name, allowed) in ARROWS {
        let beyond: Vec<String> = dependencies(name)
            .intersection(&ours)
            .filter(|used| !allowed.contains(&used.as_str()))
            .cloned()
            .collect();
        assert!(beyond.is_empty(), "{name} uses {beyond:?}");
    }
}

#[test]
fn model_does_no_io() {
    let expected = ["serde", "serde_json", "schemars", "thiserror"].map(str::to_owned);
    assert!(
        dependencies("model").is_subset(&expected.into()),
        "{:?}",
        dependencies("model")
    );
    let words = ["std::fs", "std::net", "std::process", "std::env", "File::"];
    assert_eq!(offenders("model", &words, |_| false), Vec::<String>::new());
    assert_eq!(offenders("sim", &words, |_| false), Vec::<String>::new());
    assert_eq!(offenders("stats", &words, |_| false), Vec::<String>::new());
    assert_eq!(offenders("doctor", &words, |_| false), Vec::<String>::new());
    assert_eq!(offenders("plan", &words, |_| false), Vec::<String>::new());
}

const WRITING: [&str; 8] = [
    "fs::write",
    "File::create",
    "OpenOptions",
    ".write(true)",
    "remove_file",
    "create_dir",
    "fs::rename",
    "set_permissions",
];

/// The other crates do not write at all: clippy.toml.
#[test]
fn result_files_are_never_written_below_proc_or_sys() {
    for (path, text) in sources_of("hugewise") {
        if is_test(&path) {
            continue;
        }
        let code = code(&text);
        let writes = WRITING.iter().any(|word| code.contains(word));
        assert!(
            !writes || !(code.contains("\"/proc") || code.contains("\"/sys")),
            "{}",
            path.display()
        );
    }
}

/// Which methods those are stands in clippy.toml; here only that each crate asks for it.
#[test]
fn every_crate_denies_the_methods_that_write_or_print() {
    for (name, _) in ARROWS {
        if matches!(name, "preload" | "preload-abi" | "testing" | "parsers") {
            continue;
        }
        let text = std::fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).expect("a crate");
        assert!(
            text.contains("deny(clippy::disallowed_methods)"),
            "{name} writes or prints"
        );
    }
}

#[test]
fn unsafe_stays_in_its_rooms() {
    for name in crates() {
        if matches!(name.as_str(), "chase" | "vm" | "preload") {
            continue;
        }
        let in_syscall = |path: &Path| path.file_stem().is_some_and(|stem| stem == "syscall");
        assert_eq!(
            offenders(&name, &["unsafe {", "unsafe fn", "unsafe impl"], in_syscall),
            Vec::<String>::new()
        );
    }
}

/// Files that hold one of the words, below the crates' sources.
fn holders(words: &[&str]) -> BTreeSet<String> {
    let mut holders = BTreeSet::new();
    for name in crates() {
        for (path, text) in sources_of(&name) {
            if !is_test(&path) && words.iter().any(|word| code(&text).contains(word)) {
                let from = root().join("crates");
                holders.insert(path.strip_prefix(from).expect("below").display().to_string());
            }
        }
    }
    holders
}

fn expected<const N: usize>(files: [&str; N]) -> BTreeSet<String> {
    files.map(str::to_owned).into()
}

const TABLE: &str = "a new place needs a guard and its line in the table of docs/reference/bounds.md";

#[test]
fn programs_are_started_in_these_places_only() {
    let words = [
        "Command::new",
        "libc::fork",
        "libc::execv",
        "libc::clone(",
        "SYS_clone3",
        "posix_spawn(",
        "libc::system",
        "libc::popen",
    ];
    let known = [
        // The guardian, and the process that reads what others name.
        "host/src/syscall.rs",
        // The user's own program and commands, and all that is shut in.
        "process/src/syscall.rs",
        "measure/src/kernelops/crew.rs",
    ];
    assert_eq!(holders(&words), expected(known), "{TABLE}");
}

#[test]
fn another_user_s_rights_are_given_in_these_places_only() {
    let words = [
        "setresuid",
        "set_thread_res_uid",
        "set_thread_uid",
        "setfsuid(",
        "setreuid",
        "setuid(",
        "CommandExt",
    ];
    let known = [
        // Files that processes name, read with their users' rights.
        "host/src/syscall.rs",
        // Programs.
        "process/src/rights/mod.rs",
    ];
    assert_eq!(holders(&words), expected(known), "{TABLE}");
    for recipe in ["oltp", "ejb"] {
        let folder = root().join("workloads").join(recipe);
        for entry in std::fs::read_dir(folder).expect("a recipe").flatten() {
            let text = std::fs::read(entry.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(
                !["setpriv", "as_user", "chmod"].iter().any(|word| text.contains(word)),
                "{recipe}"
            );
        }
    }
}

#[test]
fn no_shared_directory_is_used() {
    assert_eq!(
        holders(&["temp_dir()", "\"/tmp", "\"/var/tmp"]),
        expected([]),
        "{TABLE}"
    );
}

#[test]
fn host_opens_files_in_these_places_only() {
    let mut opens = holders(&[
        "File::open",
        "fs::read(",
        "read_to_string(",
        "openat(",
        "openat2(",
        "fs::read_dir",
    ]);
    opens.retain(|path| path.starts_with("host/") || path.starts_with("programs/"));
    let known = [
        // Our own and other processes' page tables: files of the kernel.
        "host/src/processes/folios.rs",
        "host/src/processes/frames.rs",
        "host/src/processes/proof.rs",
        "host/src/processes/scan.rs",
        // Files that the user names, within bounds.
        "host/src/input.rs",
        // The guarded ways.
        "host/src/source.rs",
        "host/src/source/directory.rs",
        "host/src/source/foreign.rs",
        "host/src/source/hugetlb_files.rs",
        "host/src/source/open.rs",
        "host/src/source/walk.rs",
    ];
    assert_eq!(opens, expected(known), "{TABLE}");
}

/// Where a count that could not be read may stand for none, and why.
const AS_ZERO: [(&str, &str); 4] = [
    ("programs/src/look.rs", "an order in which processes are looked at"),
    (
        "snapshot/hugetlb.rs",
        "a lease of our own, of which nothing is left out of what was not read",
    ),
    ("thp/advice.rs", "an order among findings"),
    ("programs/src/target.rs", "an order among programs"),
];

/// Invariant 8: `Reading::or_if_absent` is the way to add up what may not be there.
#[test]
fn what_could_not_be_read_is_no_zero() {
    let words = [
        ".known().copied().unwrap_or(0)",
        ".known().copied().unwrap_or_default()",
        ".known().map_or(0,",
        ".known().map_or(Bytes(0),",
        ".used().unwrap_or(0)",
    ];
    let mut used: BTreeSet<&(&str, &str)> = BTreeSet::new();
    for name in [
        "host", "programs", "doctor", "plan", "settings", "sim", "hugewise", "measure", "process", "compare",
    ] {
        for (path, text) in sources_of(name) {
            if is_test(&path) {
                continue;
            }
            let code: String = code(&text).split_whitespace().collect();
            if !words.iter().any(|word| code.contains(word)) {
                continue;
            }
            let allowed = AS_ZERO.iter().find(|(file, _)| path.ends_with(file));
            assert!(allowed.is_some(), "{}: an unread count becomes zero", path.display());
            used.extend(allowed);
        }
    }
    assert_eq!(
        used.len(),
        AS_ZERO.len(),
        "a line of AS_ZERO is no longer needed: {used:?}"
    );
}

/// Else `.ci/run` could not count it, nor fail for a program that is missing.
#[test]
fn a_test_is_skipped_through_one_helper() {
    for name in crates().into_iter().filter(|name| name != "testing") {
        let mut files = sources_of(&name);
        let tests = root().join("crates").join(&name).join("tests");
        if tests.is_dir() {
            sources(&tests, &mut files);
        }
        for (path, text) in files {
            assert!(!text.contains("println!(\"skipped: "), "{}", path.display());
        }
    }
}

#[test]
fn each_file_opens_by_saying_what_it_is_for() {
    for name in crates() {
        for (path, text) in sources_of(&name) {
            let opening = text.lines().find(|line| !line.starts_with("#![") && !line.is_empty());
            assert!(
                opening.is_some_and(|line| line.starts_with("//! ")),
                "{}",
                path.display()
            );
        }
    }
}
