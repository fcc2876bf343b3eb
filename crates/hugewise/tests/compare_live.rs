//! Comparisons inside one living process: each slice has the pages of its arm, and the process is left as it was found.

mod common;

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Run, compiled, hugewise, last_notes, lines, refused, run, sent, skipped, told, valid};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const LARGE: u64 = 2 * MIB;
/// Where a slice's pages are looked at.
const ENDS: [&str; 2] = ["large_before", "large_after"];

/// A program of this test's own that chases through its memory until its standard input ends.
struct Chase {
    child: Child,
    input: Option<ChildStdin>,
    folder: tempfile::TempDir,
}

impl Chase {
    /// Starts it and waits until it counts; `None` where there is no C compiler.
    fn start(mib: u64, how: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join("chase");
        compiled("compare_live/chase.c", &program)?;
        let mut child = Command::new(program)
            .args([&mib.to_string(), folder.path().join("steps").to_str()?, how])
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take();
        let chase = Self { child, input, folder };
        chase.wait_for("its first steps", || {
            std::fs::metadata(chase.folder.path().join("steps")).is_ok_and(|file| file.len() > 0)
        });
        Some(chase)
    }

    fn wait_for(&self, what: &str, is_there: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_there() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("it is alive")
    }

    /// Memory backed by huge pages, from smaps.
    fn large(&self) -> u64 {
        let smaps = self.proc("smaps_rollup");
        let line = smaps.lines().find(|line| line.starts_with("AnonHugePages:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.expect("a number") * 1024
    }

    fn words(&self, more: &[&str]) -> Vec<String> {
        let counter = format!(
            "steps=steps ([0-9]+),from={}",
            self.folder.path().join("steps").display()
        );
        let pid = self.child.id().to_string();
        let words = [
            "compare",
            "--live",
            &pid,
            "--metric",
            &counter,
            "--slice",
            "100ms",
            "--warm-up",
            "0",
            "--json",
        ];
        words.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn compare(&self, more: &[&str]) -> Run {
        let words = self.words(more);
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a comparison of many slices and goes on once some are finished.
    fn begin(&self, log: &Path, slices: usize) -> Child {
        let words = self.words(&["--runs", "40", "--log", log.to_str().expect("a name")]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let child = hugewise(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        self.wait_for("finished slices", || lines(log) > slices);
        child
    }
}

impl Drop for Chase {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Is this machine one on which nothing can be flipped? Then the reason is reported.
fn cannot(run: &Run) -> bool {
    let is_refused = [
        "does not let you",
        "PAGEMAP_SCAN",
        "no transparent huge pages",
        "/pagemap",
    ];
    let cannot = run.code == Some(2) && is_refused.iter().any(|part| run.err.contains(part));
    if cannot {
        skipped(run.err.trim());
    }
    cannot
}

/// Memory in pieces that could not be turned.
fn not_turned(flip: &Value) -> u64 {
    let reasons = flip["refused"].as_array().expect("reasons").iter();
    reasons.filter_map(|reason| reason["pieces"].as_u64()).sum::<u64>() * LARGE
}

fn slices(result: &Value, arm: usize) -> impl Iterator<Item = &Value> {
    result["data"]["arms"][arm]["runs"].as_array().expect("slices").iter()
}

/// Its time on all CPUs is about the CPU time by which its counter is judged.
fn has_its_places(slice: &Value) {
    let Some(cpus) = slice["ran"]["cpu_s"].as_object() else {
        return skipped("the time of tasks on each CPU is not counted here");
    };
    let placed: f64 = cpus.values().filter_map(Value::as_f64).sum();
    let used = slice["metrics"]["cpu"].as_f64().expect("a number");
    assert!(placed > 0.5 * used && placed < 2.0 * used, "{slice}");
}

#[test]
fn every_slice_has_the_pages_of_its_arm_and_the_process_has_its_own_again() {
    let Some(chase) = Chase::start(128, "") else { return };
    let before = chase.large();
    let run = chase.compare(&["--runs", "2"]);
    if cannot(&run) {
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.err);
    let result = valid(&run.out);
    let data = &result["data"];
    if data["verdicts"][0]["verdict"] == "not-in-effect" {
        return skipped(&last_notes(&result));
    }
    assert_eq!(data["design"]["method"], "flip", "{data}");
    assert_eq!((slices(&result, 0).count(), slices(&result, 1).count()), (4, 2));
    for slice in slices(&result, 0) {
        for end in ENDS {
            // khugepaged may bring a few back where THP is always on.
            assert!(slice["slice"][end].as_u64() <= Some(8 * MIB), "{slice}");
        }
    }
    for slice in slices(&result, 1) {
        for end in ENDS {
            // What the kernel refuses, for want of free memory in one piece, it must be reported to have refused.
            let large = slice["slice"][end].as_u64().expect("a number") + not_turned(&slice["slice"]["flip"]);
            assert!(large >= 126 * MIB, "{slice}");
        }
        assert!(slice["metrics"]["steps"].as_f64() > Some(0.0), "{slice}");
    }
    slices(&result, 0).chain(slices(&result, 1)).for_each(has_its_places);
    let flips = slices(&result, 0).chain(slices(&result, 1));
    for flip in flips.map(|slice| &slice["slice"]["flip"]) {
        let counted = flip["splits"].as_u64().max(flip["collapses"].as_u64());
        assert!(counted >= flip["turned"].as_u64(), "the machine's own counts: {flip}");
    }
    assert!(
        data["controls"][0]["ratio"].as_f64().is_some(),
        "the comparison's own A/A"
    );
    assert_eq!((&data["restored"]["wrong"], chase.large()), (&0.into(), before));
    assert!(!chase.proc("stat").contains(") T "), "it was never stopped");
}

#[test]
fn after_ctrl_c_large_pages_are_large_again_and_the_same_process_can_be_gone_on_with() {
    let Some(chase) = Chase::start(64, "advised") else {
        return;
    };
    if cannot(&chase.compare(&["--runs", "1"])) {
        return;
    }
    let before = chase.large();
    if before < 64 * MIB {
        return skipped("this machine gives no huge pages on advice");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("slices.jsonl");
    let stopped = chase.begin(&log, 4);
    sent("-INT", &stopped);
    let stopped = told(stopped.wait_with_output().expect("it ends"));
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    let wrong = valid(&stopped.out)["data"]["restored"]["wrong"].as_u64();
    assert_eq!(chase.large() + wrong.expect("a number") * LARGE, before);
    let kept = std::fs::read_to_string(&log).expect("slices");
    let first: Vec<Value> = kept
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a slice"))
        .collect();
    let was_base = |line: &&Value| line["arm"] == "base" && line["run"]["slice"]["large_after"] == 0;
    assert!(
        first.iter().any(|line| was_base(&line)),
        "its huge pages were split in between"
    );
    let words = ["--runs", "3", "--resume", log.to_str().expect("a name")];
    let resumed = chase.compare(&words);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!(valid(&resumed.out)["data"]["design"]["blocks"], 3);
    let Some(other) = Chase::start(8, "") else { return };
    assert!(
        other.compare(&words).err.contains("it is of `process"),
        "slices of another process are not joined"
    );
}

#[test]
fn what_keeps_an_arm_from_its_pages_is_told_and_is_never_no_difference() {
    for (how, verdict, reason) in [("disabled", "not-in-effect", "prctl"), ("locked", "unknown", "mlock")] {
        let Some(chase) = Chase::start(16, how) else { return };
        if how == "locked" && chase.large() == 0 {
            skipped("this machine gives no huge pages on advice");
            continue;
        }
        let run = chase.compare(&["--fail-if", "not-in-effect,unknown"]);
        if cannot(&run) {
            return;
        }
        let result = valid(&run.out);
        let judged = &result["data"]["verdicts"][0];
        assert_eq!(
            (run.code, judged["verdict"].as_str()),
            (Some(1), Some(verdict)),
            "{judged}"
        );
        let notes = last_notes(&result);
        assert!(notes.contains(reason), "{notes}");
        assert_eq!(
            result["data"]["design"]["blocks"], 1,
            "one block says so as well as thirty"
        );
    }
}

#[test]
fn if_the_process_ends_what_was_finished_is_judged() {
    let Some(mut chase) = Chase::start(16, "") else { return };
    let probe = chase.compare(&["--runs", "1"]);
    if cannot(&probe) {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let running = chase.begin(&folder.path().join("slices.jsonl"), 4);
    drop(chase.input.take());
    let ended = told(running.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let result = valid(&ended.out);
    assert_eq!(result["data"]["design"]["ended"], "program-ended");
    assert!(
        result["warnings"]
            .as_array()
            .expect("warnings")
            .iter()
            .any(|warning| warning["code"] == "program-ended")
    );
    assert!(result["data"]["restored"].is_null());
}

#[test]
fn what_makes_no_comparison_in_place_is_refused_with_what_to_write() {
    let own = std::process::id().to_string();
    let counter = ["--metric", "x=x([0-9]+),from=/proc/uptime"];
    let cases = [
        (&own, vec![], "--metric 'ops=ops"),
        (&own, vec!["--metric", "wall"], "takes a --load"),
        (&own, vec!["--metric", "x=([0-9]+)"], "nothing prints it"),
        (
            &own,
            [&counter[..], &["--arms", "base,hugetlb-2M"]].concat(),
            "write base,thp",
        ),
        (&own, [&counter[..], &["--arms", "thp"]].concat(), "between two arms"),
        (
            &own,
            [&counter[..], &["--range", "text"]].concat(),
            "write anon, heap or addresses",
        ),
        (&own, [&counter[..], &["--place", "pack"]].concat(), "--place"),
        (
            &own,
            [&counter[..], &["--", "/bin/true"]].concat(),
            "cannot be used with",
        ),
    ];
    for (pid, words, part) in cases {
        let error = refused(&[&["compare", "--live", pid], &words[..]].concat());
        assert!(error.contains(part), "{words:?}: {error}");
    }
    let nobody = refused(&[&["compare", "--live", "4000000"], &counter[..]].concat());
    assert!(nobody.contains("4000000"), "{nobody}");
}
