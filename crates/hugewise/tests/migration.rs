//! `measure migration` as a user runs it: this machine's kinds of moves, and what it refuses.

mod common;

use common::{done, refused};
use serde_json::Value;

#[test]
fn costs_of_moves_are_measured_shown_again_and_kept_as_csv() {
    let cpus = rustix::thread::sched_getaffinity(None).expect("CPUs");
    if cpus.count() < 2 {
        return testing::skipped("this process may use one CPU only");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("migration.json");
    let file = file.to_str().expect("text");
    let sizes = ["measure", "migration", "--sizes", "16K,64K", "--budget", "300ms"];
    done(&[&sizes[..], &["--output", file, "--json"]].concat());
    let result: Value = serde_json::from_slice(&std::fs::read(file).expect("a result")).expect("JSON");
    assert_eq!(result["schema"], "hugewise/migration/1");
    let data = &result["data"];
    let count = |list: &str| data[list].as_array().map_or(0, Vec::len);
    assert!(count("kinds") >= 1 && count("points") == 2 * count("kinds"), "{data}");
    let text = done(&["report", file, "--format", "text"]).out;
    assert!(text.contains("adds") && text.contains("sched_setaffinity"), "{text}");
    let csv = done(&["report", file, "--format", "csv"]).out;
    assert!(csv.starts_with("move_to,bytes,cost_ns"), "{csv}");
}

#[test]
fn what_cannot_be_measured_is_refused_by_its_flag() {
    for (flags, parts) in [
        (["--cpus", "9999"], ["--cpus 9999", "offline"]),
        (["--cpus", "0"], ["fewer than two CPUs", "another"]),
        (["--sizes", "1K"], ["--sizes 1K", "4K or more"]),
        (["--sizes", "4096G"], ["--sizes", "may be taken"]),
    ] {
        let err = refused(&[&["measure", "migration"], &flags[..]].concat());
        parts
            .iter()
            .for_each(|part| assert!(err.contains(part), "{flags:?}: {err}"));
    }
    let err = refused(&["measure", "migration", "--pages", "hugetlb-2M"]);
    assert!(err.contains("base, thp"), "{err}");
}
