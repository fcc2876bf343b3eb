//! The invariants of ARCHITECTURE.md that no lint holds: arrows between crates, places where something foreign comes in, and unread counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crates of ours each crate may use, tests aside.
const ARROWS: [(&str, &str); 21] = [
    ("model", ""),
    ("host", "model"),
    ("chase", "model host"),
    ("vm", "model chase"),
    ("preload-abi", ""),
    ("preload", "preload-abi"),
    ("stats", "model"),
    ("measure", "model stats host chase vm"),
    ("process", "model host chase"),
    ("placement", "model stats host chase process"),
    ("compare", "model stats host chase process placement preload-abi"),
    ("translation", "model"),
    ("predict", "model translation"),
    ("studies", "model translation"),
    ("programs", "model host"),
    ("doctor", "model host programs"),
    ("plan", "model host programs"),
    ("settings", "model host"),
    ("draw", "model"),
    (
        "hugewise",
        "model stats host measure process compare placement programs translation predict studies doctor plan settings draw",
    ),
    // Of tests alone.
    ("testing", ""),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

/// What each crate depends on, tests aside, by the name that its sources use.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let folder = |package: &serde_json::Value| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().and_then(Path::file_name).expect("a folder");
        folder.to_string_lossy().into_owned()
    };
    let used = |package: &serde_json::Value| {
        let used = package["dependencies"].as_array().expect("dependencies").iter();
        let used = used.filter(|used| used["kind"].is_null());
        let name = |used: &serde_json::Value| used["rename"].as_str().or(used["name"].as_str()).map(str::to_owned);
        used.filter_map(name).collect()
    };
    let crates = packages.filter(|package| {
        package["manifest_path"]
            .as_str()
            .is_some_and(|path| path.contains("/crates/"))
    });
    crates.map(|package| (folder(package), used(package))).collect()
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

#[test]
fn arrows_only_go_down() {
    let dependencies = dependencies();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let ours: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(
        ours, known,
        "a new crate needs its line in ARROWS and in ARCHITECTURE.md"
    );
    for (name, allowed) in ARROWS {
        let used = dependencies[name].iter().map(String::as_str);
        let allowed: Vec<&str> = allowed.split(' ').collect();
        let beyond: Vec<&str> = used
            .filter(|used| ours.contains(used) && !allowed.contains(used))
            .collect();
        assert!(beyond.is_empty(), "{name} uses {beyond:?}");
    }
    let of_model = ["serde", "serde_json", "schemars", "thiserror"].map(str::to_owned);
    assert!(dependencies["model"].is_subset(&of_model.into()), "model does no I/O");
}

#[test]
fn what_a_manifest_names_its_sources_use() {
    for (name, used) in dependencies() {
        let sources = sources_of(&name);
        let is_named = |dependency: &str| {
            let word = match dependency {
                // Its library has a name of its own.
                "perf-event2" => "perf_event".to_owned(),
                other => other.replace('-', "_"),
            };
            let [path, import] = [format!("{word}::"), format!("use {word}")];
            let mut texts = sources.values().map(|text| code(text));
            texts.any(|text| text.contains(&path) || text.contains(&import))
        };
        let unused: Vec<&String> = used.iter().filter(|used| !is_named(used.as_str())).collect();
        assert!(unused.is_empty(), "{name} does not use {unused:?}");
    }
}

/// Which methods those are stands in clippy.toml; here only that each crate asks for it.
#[test]
fn every_crate_denies_the_methods_that_write_or_print() {
    for (name, _) in ARROWS {
        if matches!(name, "preload" | "preload-abi" | "testing") {
            continue;
        }
        let text = std::fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).expect("a crate");
        assert!(
            text.contains("deny(clippy::disallowed_methods)"),
            "{name} writes or prints"
        );
    }
}

/// Files that hold one of the words, below the crates' sources.
fn holders(words: &[&str]) -> BTreeSet<String> {
    let mut holders = BTreeSet::new();
    for (name, _) in ARROWS {
        for (path, text) in sources_of(name) {
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
        "host/src/processes/pagemap.rs",
        "host/src/processes/proof.rs",
        "host/src/processes/scan.rs",
        // Files that the user names, within bounds.
        "host/src/input.rs",
        // Names below a directory that the user names.
        "programs/src/image.rs",
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

/// Each of these is handed to the program once: opened, looked at, and then read or written by what was opened.
#[test]
fn files_are_opened_and_removed_by_name_in_these_places_only() {
    let mut names = holders(&[
        "fs::read(",
        "fs::read_to_string(",
        "OpenOptions::new",
        "File::options(",
        "openat(",
        "openat2(",
        " File::open(",
        "(File::open(",
        "fs::write(",
        "remove_file",
        "remove_dir",
    ]);
    names.retain(|path| {
        !["host/", "programs/", "preload/"]
            .iter()
            .any(|read| path.starts_with(read))
    });
    let known = [
        // Files of the kernel.
        "chase/src/tlbwalk/prove.rs",
        "compare/src/flip/live.rs",
        "measure/src/kernelops/company.rs",
        "process/src/cgroup.rs",
        "process/src/spawn/mod.rs",
        "process/src/used.rs",
        // Files that the user names.
        "hugewise/src/files/draft.rs",
        "hugewise/src/files/place.rs",
        // Directories that this user alone can change.
        "hugewise/src/commands/compare/store.rs",
        "hugewise/src/commands/suite/directory.rs",
        "hugewise/src/commands/suite/experiment.rs",
        "hugewise/src/recipes/build.rs",
        "hugewise/src/scratch.rs",
        "settings/src/line_file.rs",
        "settings/src/state_dir.rs",
        // A server's own version, without links.
        "hugewise/src/commands/size/ask_postgres.rs",
        // The machine's settings.
        "settings/src/sink.rs",
        "settings/src/sink/rooted.rs",
        // Of tests.
        "settings/src/scene.rs",
        "testing/src/lib.rs",
    ];
    assert_eq!(names, expected(known), "{TABLE}");
}

#[test]
fn owners_are_given_and_asked_in_these_places_only() {
    let known = [
        // A result keeps the owner of the file that it replaces.
        "hugewise/src/files/draft.rs",
        // The one folder that another user owns, in which root writes nothing.
        "hugewise/src/scratch.rs",
        // A file of a plan.
        "settings/src/sink/rooted.rs",
    ];
    assert_eq!(holders(&["chown("]), expected(known), "{TABLE}");
    let known = [
        // Who else can write it?
        "host/src/writers.rs",
        // The kernel's rule for links and files in directories that others may write.
        "hugewise/src/files/place.rs",
    ];
    assert_eq!(holders(&["0o022", "0o002"]), expected(known), "ask host::writers");
}

/// A command that changed the machine ends with the code of what it did, whatever became of its output.
#[test]
fn what_was_done_decides_the_exit_code() {
    let by_deed = holders(&[".give_what_was_done("]);
    let known = ["apply.rs", "collapse.rs", "undo.rs"].map(|file| format!("hugewise/src/commands/{file}"));
    assert_eq!(by_deed, known.into());
    for file in by_deed {
        let text = std::fs::read_to_string(root().join("crates").join(&file)).expect("a source file");
        assert!(
            ![".give(", ".give_about(", ".give_here("]
                .iter()
                .any(|by| text.contains(by)),
            "{file}"
        );
    }
}

/// Where a count that could not be read may stand for none, and why.
const AS_ZERO: [(&str, &str); 5] = [
    ("programs/src/look.rs", "an order in which processes are looked at"),
    (
        "snapshot/hugetlb.rs",
        "a lease of our own, of which nothing is left out of what was not read",
    ),
    ("thp/advice.rs", "an order among findings"),
    ("programs/src/target.rs", "an order among processes of a program"),
    ("programs/src/target/meant.rs", "an order among programs"),
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
        "host",
        "programs",
        "doctor",
        "plan",
        "settings",
        "translation",
        "predict",
        "studies",
        "hugewise",
        "measure",
        "process",
        "compare",
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
