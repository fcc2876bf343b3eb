//! Slices of real programs that are alive at once: each on the pages of its arm, none left alive or stopped.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::stall::{Reference, assert_gone};
use common::{alive, compiled, hugewise, lines, run, sent, skipped, told, valid};

fn compile(folder: &Path, source: &str) -> Option<PathBuf> {
    let built = folder.join("count");
    compiled(source, &built).map(|()| built)
}

/// The words of a comparison of a program that counts in a file of each arm's own, in this folder.
fn words(folder: &Path, program: &Path, more: &[&str]) -> Vec<String> {
    let file = folder.join("{arm}.txt").display().to_string();
    let metric = format!("ops=ops=([0-9]+),from={file}");
    let first = ["compare", "--metric", &metric, "--slice", "50ms", "--design", "auto"];
    let program = program.display().to_string();
    let all = first.iter().chain(more).copied().chain(["--", &program, &file, "16"]);
    all.map(str::to_owned).collect()
}

/// Processes, stopped or not, with the folder's name in their arguments.
fn left(folder: &Path) -> usize {
    alive(&folder.join("count"))
}

#[test]
fn every_slice_has_the_pages_of_its_arm_and_the_reference_is_there_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "compare_slices/count.c") else {
        return;
    };
    let words = words(
        folder.path(),
        &program,
        &["--arms", "base,thp", "--runs", "2", "--json"],
    );
    let run = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((run.code, left(folder.path())), (Some(0), 0), "{}", run.err);
    let data = &valid(&run.out)["data"];
    assert_eq!(data["design"]["method"], "slices");
    let large = |run: &serde_json::Value| run["backing"]["thp"].as_u64().unwrap_or(0);
    let runs = |arm: usize| data["arms"][arm]["runs"].as_array().expect("runs").clone();
    assert!(runs(0).iter().all(|run| large(run) == 0), "{data}");
    assert_eq!(
        (runs(0).len(), runs(1).len()),
        (16, 8),
        "two starts, four slices of each program"
    );
    assert_eq!(
        (&data["design"]["blocks"], &data["design"]["per_start"]),
        (&2.into(), &4.into())
    );
    if data["arms"][1]["took_effect"] == true {
        assert_eq!(data["verdicts"][0]["why"], "few-starts");
    }
    assert!(
        runs(0)
            .iter()
            .chain(&runs(1))
            .all(|run| run["metrics"]["ops"].as_f64() > Some(0.0))
    );
    if data["arms"][1]["took_effect"] != true {
        return skipped("this machine gave the program no huge pages");
    }
    assert!(runs(1).iter().all(|run| large(run) >= 8 << 20), "{data}");
    assert!(std::fs::metadata(folder.path().join("base-again.txt")).is_ok());
}

#[test]
fn a_program_that_ends_too_early_is_run_anew_unless_slices_were_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "compare_flip/chase.c") else {
        return;
    };
    let (file, program) = (folder.path().join("{arm}.txt"), program.display().to_string());
    let file = file.display().to_string();
    let metric = format!("steps=steps ([0-9]+),from={file}");
    let words = |design: &str| {
        let first = [
            "compare",
            "--quiet",
            "--arms",
            "base,system",
            "--design",
            design,
            "--metric",
            &metric,
        ];
        let rest = [
            "--runs",
            "1",
            "--warm-up",
            "0",
            "--json",
            "--",
            &program,
            "4",
            &file,
            "1",
        ];
        run(&[&first[..], &rest].concat())
    };
    let auto = words("auto");
    assert_eq!((auto.code, left(folder.path())), (Some(0), 0), "{}", auto.err);
    let design = &valid(&auto.out)["data"]["design"];
    let reason = &design["reason"];
    assert_eq!(design["method"], "runs", "{reason}");
    assert_eq!(
        (&reason["code"], &reason["method"]),
        (&"tried".into(), &"slices".into())
    );
    let asked = words("slices");
    assert_eq!((asked.code, left(folder.path())), (Some(2), 0), "{}", asked.err);
    assert!(
        asked.err.contains("(--design runs starts the program anew"),
        "{}",
        asked.err
    );
}

/// Starts a long comparison, and waits until three programs, each with a child, have made some slices.
fn begun(folder: &Path, program: &Path, log: &Path) -> Child {
    let log_name = log.to_str().expect("a name");
    let more = ["--arms", "base,system", "--runs", "900", "--log", log_name];
    let words = words(folder, program, &more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut child = hugewise(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    // Programs are started anew every four slices: a moment at which all are there.
    while (lines(log) < 4 || left(folder) != 6)
        && began.elapsed() < Duration::from_secs(60)
        && child.try_wait().is_ok_and(|end| end.is_none())
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(left(folder), 6);
    child
}

#[test]
fn after_ctrl_c_nothing_is_left_alive_or_stopped_and_finished_slices_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "compare_slices/count.c") else {
        return;
    };
    let log = folder.path().join("log.jsonl");
    let child = begun(folder.path(), &program, &log);
    sent("-INT", &child);
    let told = told(child.wait_with_output().expect("it ends"));
    assert_eq!((told.code, left(folder.path())), (Some(130), 0), "{}", told.err);
    assert!(lines(&log) >= 4);
}

/// The children have sessions of their own, and all but one of them are stopped. Where HUGEWISE_TEST_KILLS is set, they have a
/// second.
#[test]
fn after_kill_9_nothing_is_left_alive_or_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "compare_slices/count.c") else {
        return;
    };
    let reference = std::env::var_os("HUGEWISE_TEST_KILLS").map(|_| Reference::start());
    let mut child = begun(folder.path(), &program, &folder.path().join("log.jsonl"));
    sent("-KILL", &child);
    child.wait().expect("it ends");
    assert_gone("after kill -9", reference.as_ref(), || left(folder.path()));
}
