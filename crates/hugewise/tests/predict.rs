//! Predictions of real programs: captured, kept as a trace, and predicted again from it.

mod common;

use std::process::{Command, Stdio};

use common::{Run, compiled, done, json, refused, run, skipped, told, valid, words};
use serde_json::Value;

/// Some hundred thousand instructions a round, in few pages.
const LOOP: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

/// A kernel without them has nothing to calibrate on.
fn lacks_thp() -> bool {
    let lacks = !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    if lacks {
        skipped("no transparent huge pages");
    }
    lacks
}

#[test]
fn a_program_is_captured_and_predicted_natively_and_behind_a_hypervisor() {
    let asked = "predict --machine 8452y --window 4000 --budget 20s --json -- sh -c";
    let result = json(&words(asked, &[LOOP]));
    let data = &result["data"];
    assert_eq!(data["capture"]["command"][0], "sh");
    assert!(
        data["windows"].as_u64() > Some(0) && data["accesses"].as_u64() > Some(500),
        "{data}"
    );
    let rows = data["rows"].as_array().expect("rows");
    let modes = |mode: &str| rows.iter().filter(|row| row["setting"]["mode"] == mode).count();
    assert_eq!(["native", "nested", "shadow"].map(modes), [3, 5, 3]);
    for row in rows {
        // A loop of the shell needs few pages: nothing to save.
        let saves = row["saves"]["middle"].as_f64().expect("a share");
        assert!(saves.abs() < 0.1, "{row}");
    }
}

#[test]
fn a_trace_is_kept_and_predicted_for_another_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.trace");
    let file = path.to_str().expect("text");
    let traced = done(&[
        "trace", "--window", "4000", "--budget", "20s", "--output", file, "--", "sh", "-c", LOOP,
    ]);
    assert!(traced.err.contains("captured"), "{}", traced.err);
    let data = &json(&["predict", "--machine", "x5560", "--trace", file, "--json"])["data"];
    assert!(
        data["input"]
            .as_str()
            .is_some_and(|input| input.ends_with("(hugewise)")),
        "{data}"
    );
    assert_eq!(data["capture"]["command"][0], "sh");
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/epyc-guest.tree");
    let here = |more: &[&str]| json(&[&["predict", "--root", tree, "--trace", file, "--json"], more].concat());
    let (by_word, without) = (here(&["--machine", "here"]), here(&[]));
    assert_eq!(by_word["data"], without["data"]);
    assert_eq!(by_word["warnings"], without["warnings"], "of a virtual machine");
    let data = &json(&[
        "simulate",
        "translation",
        "--machine",
        "x5560",
        "--trace",
        file,
        "--json",
    ])["data"];
    assert!(data["accesses"].as_u64() > Some(500), "{data}");
    let bytes = std::fs::read(&path).expect("the trace");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
    let why = refused(&["predict", "--machine", "x5560", "--trace", file]);
    assert!(
        why.contains(file) && why.contains("offset") && why.contains("truncated"),
        "{why}"
    );
}

/// Only what the machine lacks excuses it: time beside others, and huge pages.
fn not_calibrated(result: &Value) {
    let mut warnings = result["warnings"].as_array().expect("warnings").iter();
    let why = warnings.find(|warning| warning["code"] == "not-calibrated");
    let why = why.expect("a reason")["text"].to_string();
    let no_time = ["one run takes", "the time was over", "too few for an interval"];
    if no_time.iter().any(|part| why.contains(part)) {
        return skipped(&format!("the machine is too busy: {why}"));
    }
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let is_never = text("/sys/kernel/mm/transparent_hugepage/enabled").contains("[never]");
    let zones = text("/proc/buddyinfo");
    let counts = zones.lines().flat_map(|line| line.split_whitespace().skip(4 + 9));
    let free_2m: u64 = counts.filter_map(|count| count.parse::<u64>().ok()).sum();
    assert!(is_never || free_2m < 100, "{free_2m} huge pages are free: {why}");
    skipped(&format!("no huge page to be had: {why}"));
}

#[test]
fn runs_here_scale_a_prediction() {
    if lacks_thp() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("reads");
    if compiled("reads.c", &program).is_none() {
        return;
    }
    let program = program.to_str().expect("text");
    let asked = [
        "predict",
        "--calibrate=15s",
        "--budget",
        "20s",
        "--window",
        "4000",
        "--json",
        "--",
        program,
    ];
    let run = run(&asked);
    if run.code != Some(0) {
        assert!(run.err.contains("the CPU table does not have"), "{}", run.err);
        return skipped(&format!("the CPU is in no table: {}", run.err));
    }
    let result = valid(&run.out);
    let calibration = &result["data"]["calibration"];
    if calibration.is_null() {
        return not_calibrated(&result);
    }
    let observed = calibration["observed"].as_array().expect("runs");
    assert!(!observed.is_empty() && observed.len() == calibration["fitted"].as_array().expect("as many").len());
    for run in observed {
        let [low, middle, high] = ["low", "middle", "high"].map(|key| run["saves"][key].as_f64().expect("a share"));
        assert!(low <= middle && middle <= high && high < 1.0, "{run}");
        assert!(run["coverage"].as_f64() >= Some(0.1), "{run}");
    }
    let rows = result["data"]["rows"].as_array().expect("rows");
    let base = &calibration["base"];
    let is_here =
        |row: &&Value| row["setting"]["mode"] == base["mode"] && row["setting"]["host_page"] == base["host_page"];
    let shares = rows
        .iter()
        .filter(is_here)
        .filter(|row| row["setting"]["share"].is_u64());
    assert_eq!(shares.count(), 3, "{rows:?}");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_its_reason() {
    let why = refused(&["predict", "--machine", "8452y", "--", "true"]);
    assert!(why.contains("no window began in it"), "{why}");
    let why = refused(&[
        "predict",
        "--machine",
        "8452y",
        "--",
        "sh",
        "-c",
        "echo broken >&2; exit 3",
    ]);
    assert!(why.contains("exit status: 3") && why.contains("broken"), "{why}");
    assert!(why.contains("--ignore-failure"), "{why}");
    let why = refused(&["predict", "--machine", "8452y", "--", "/no/such/program"]);
    assert!(why.contains("/no/such/program"), "{why}");
    let why = refused(&["predict"]);
    assert!(why.contains("--trace"), "{why}");
}

#[test]
fn what_can_be_known_is_refused_before_the_program_runs_or_anything_is_timed() {
    if lacks_thp() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made").display().to_string();
    let program = format!("touch {made}; {LOOP}");
    let is_free = || !std::path::Path::new(&made).exists();
    for (field, expected) in [
        ("page_sizes = ['16K']", "pages of 4K are missing"),
        ("page_sizes = ['4K']", "pages of 2M are missing"),
        ("vcpus = 2", "one virtual CPU"),
    ] {
        let file = folder.path().join("machine.toml");
        std::fs::write(&file, format!("like = 'epyc-7742'\n{field}\n")).expect("written");
        let file = file.to_str().expect("text");
        for more in [&[][..], &["--calibrate"]] {
            let why = refused(&[&["predict", "--machine", file], more, &["--", "sh", "-c", &program]].concat());
            assert!(why.contains(file) && why.contains(expected) && is_free(), "{why}");
        }
    }
    let file = folder.path().join("machine.toml");
    std::fs::write(&file, "like = 'epyc-7742'\n").expect("written");
    let file = file.to_str().expect("text");
    let why = refused(&["predict", "--machine", file, "--calibrate", "--", "/no/such/program"]);
    assert!(why.contains("/no/such/program: there is no such program"), "{why}");
    assert!(!why.contains("timing"), "{why}");
}

#[test]
fn runs_that_fail_after_the_trace_leave_a_prediction_without_them() {
    fails_after_the_trace(|words| Some(run(words)));
}

/// Half of the memory is on huge pages with that right alone, so that arms are others without it.
#[test]
fn a_prediction_is_calibrated_without_the_right_to_collapse_memory_too() {
    fails_after_the_trace(|words| {
        let mut command = Command::new("setpriv");
        command
            .args(["--inh-caps=-sys_nice", "--ambient-caps=-sys_nice"])
            .args(
                rustix::process::geteuid()
                    .is_root()
                    .then_some("--bounding-set=-sys_nice"),
            )
            .arg(env!("CARGO_BIN_EXE_hugewise"))
            .args(words)
            .stdin(Stdio::null());
        let output = command.output().map_err(|_| skipped("no setpriv"));
        output.ok().map(told)
    });
}

fn fails_after_the_trace(run: impl Fn(&[&str]) -> Option<Run>) {
    if lacks_thp() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("machine.toml");
    std::fs::write(&file, "like = 'epyc-7742'\n").expect("written");
    let once = folder.path().join("once").display().to_string();
    let program = format!("[ -e {once} ] && exit 3; touch {once}; {LOOP}");
    let asked = words(
        "predict --calibrate=30s --window 4000 --budget 20s --json --machine",
        &[file.to_str().expect("text"), "--", "sh", "-c", &program],
    );
    let Some(run) = run(&asked) else { return };
    assert_eq!(run.code, Some(0), "{}", run.err);
    let result = valid(&run.out);
    let warnings = result["warnings"].as_array().expect("warnings");
    let why = warnings.iter().find(|warning| warning["code"] == "not-calibrated");
    let why = why.and_then(|why| why["text"].as_str()).unwrap_or_default();
    assert!(
        why.contains("exit status: 3") && why.contains("--calibrate=30s"),
        "{warnings:?}"
    );
    assert!(result["data"]["calibration"].is_null() && result["data"]["rows"].is_array());
}

#[test]
fn a_failure_may_be_ignored_and_cpus_are_listed() {
    let program = format!("{LOOP}; exit 3");
    let asked = "predict --machine 8452y --window 4000 --budget 20s --ignore-failure --json -- sh -c";
    let result = json(&words(asked, &[&program]));
    assert!(result["data"]["accesses"].as_u64() > Some(500), "{result}");
    let list = done(&["predict", "--machine", "list"]).out;
    assert!(list.contains("granite-rapids") && list.contains("epyc-9965"), "{list}");
    assert!(!list.contains("sierra-forest"), "its TLBs are not known: {list}");
}
