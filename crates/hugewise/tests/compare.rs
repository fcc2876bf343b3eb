//! Whole comparisons of small programs: their results fit the schema, an arm without its pages is reported, nothing finished is lost.

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{hugewise, last_notes, refused, run, sent, skipped, told, valid, words};
use rustix::process::{getpid, set_child_subreaper};

const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
const SURPLUS: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
/// Copies through a buffer of 64 MiB, which it holds from its first moment to its last; for a second, so that it is seen beside other tests.
const HOLDS: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=120"];

#[test]
fn an_arm_that_gets_no_pages_is_not_in_effect_and_the_exit_code_can_say_so() {
    let number = |path| {
        std::fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
    };
    if (number(FREE), number(SURPLUS)) != (Some(0), Some(0)) {
        return skipped("the pool of 2M pages is not there, or holds pages on loan");
    }
    let arms = [
        "compare",
        "--arms",
        "base,hugetlb-2M",
        "--no-pool",
        "--runs",
        "1",
        "--warm-up",
        "0",
        "--json",
    ];
    let words = [&arms[..], &["--fail-if", "not-in-effect", "--"], &HOLDS].concat();
    let run = run(&words);
    let result = valid(&run.out);
    let judged = &result["data"]["verdicts"][0];
    assert_eq!(
        (run.code, judged["verdict"].as_str()),
        (Some(1), Some("not-in-effect")),
        "{judged}"
    );
    assert_eq!(judged["why"], "not-in-effect");
    let notes = last_notes(&result);
    assert!(notes.contains("--no-pool forbids filling the pool"), "{notes}");
    assert_eq!(result["data"]["arms"][0]["took_effect"], true);
}

#[test]
fn an_arm_whose_pages_cannot_be_lent_says_why() {
    let words = [
        "compare",
        "--arms",
        "base,hugetlb-2M",
        "--pool",
        "900T",
        "--runs",
        "1",
        "--warm-up",
        "0",
        "--json",
    ];
    let run = run(&[&words[..], &["--"], &HOLDS].concat());
    if run.code != Some(0) {
        return skipped(run.err.trim());
    }
    let result = valid(&run.out);
    if result["data"]["verdicts"][0]["verdict"] != "not-in-effect" {
        return skipped("the pool holds pages on loan");
    }
    let notes = last_notes(&result);
    assert!(notes.contains("pages of 2M could not be borrowed: "), "{notes}");
}

#[test]
fn what_makes_no_comparison_is_refused_with_what_to_write() {
    let cases = [
        (vec!["--arms", "base", "--", "/bin/true"], "one arm alone"),
        (vec!["--arms", "base,huge", "--", "/bin/true"], "hugetlb-2M"),
        (vec!["--", "no-such-program"], "there is no such program"),
        (vec!["--smallest-effect", "1", "--", "/bin/true"], "percent sign"),
        (vec!["--metric", "speed", "--", "/bin/true"], "wall, cpu"),
        (vec!["--workload", "oracle"], "memtest, oltp"),
        (
            vec!["--workload", "jbb", "--metric", "speed"],
            "the recipe has work, mutator",
        ),
        (vec!["--quiet", "true", "x"], "hugewise compare -- true x"),
        (vec!["--ready", "true", "--load", "true"], "write --stop COMMAND"),
        (
            vec!["--arms", "base,thp", "--place", "pin=9999", "--", "/bin/true"],
            "CPU 9999",
        ),
    ];
    for (words, part) in cases {
        let error = refused(&[&["compare"], &words[..]].concat());
        assert!(error.contains(part), "{words:?}: {error}");
    }
}

#[test]
fn an_interrupted_comparison_keeps_its_runs_and_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("runs.jsonl");
    let log_name = log.to_str().expect("a name");
    let start = |option: &str| {
        let line = "compare --arms base,system --runs 6 --warm-up 0 --json";
        let mut command = hugewise(&words(line, &[option, log_name, "--", "/bin/sleep", "0.2"]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("starts")
    };
    let runs = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("{\"arm\"")).count()
    };
    let mut kept = 0;
    for (option, signal, more) in [("--log", "-INT", 5), ("--resume", "-TERM", 1)] {
        let stopped = start(option);
        let began = Instant::now();
        while runs() < kept + more && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        sent(signal, &stopped);
        let stopped = told(stopped.wait_with_output().expect("ends"));
        assert_eq!(stopped.code, Some(130), "{signal}: {}", stopped.err);
        assert!(
            (kept + more..18).contains(&runs()) && stopped.err.contains("finished runs are in"),
            "{signal}: {}: {}",
            runs(),
            stopped.err
        );
        kept = runs();
    }
    let resumed = told(start("--resume").wait_with_output().expect("ends"));
    let text = std::fs::read_to_string(&log).expect("a log");
    let kept = |begins: &str| text.lines().filter(|line| line.starts_with(begins)).count();
    assert_eq!((resumed.code, kept("{\"arm\"")), (Some(0), 18), "{}", resumed.err);
    let result = valid(&resumed.out);
    // What was spent on verdicts stands beside the runs, so that a session that goes on with them spends the rest.
    let spent = result["data"]["design"]["spent"].as_array().map_or(0, Vec::len);
    assert_eq!(kept("{\"look\""), spent);
    assert!(text.starts_with("{\"schema\":\"hugewise/compare-runs/4\"") && text.contains("\"metrics\":[\"wall\"]"));
    another_metric_is_refused(log_name);
    what_differs_is_named(log_name);
    assert_eq!(result["data"]["design"]["blocks"], 6);
    assert_eq!(result["data"]["arms"][0]["runs"].as_array().map(Vec::len), Some(12));
    // 18 runs of 0.2 s, of three sessions.
    let seconds = result["data"]["design"]["seconds"].as_f64();
    assert!(seconds.is_some_and(|seconds| seconds >= 3.6), "{seconds:?}");
}

/// Runs that were made with something else are answers to another question.
fn what_differs_is_named(log: &str) {
    let same = words(
        "compare --arms base,system --runs 6 --warm-up 0 --resume",
        &[log, "--quiet", "--", "/bin/sleep", "0.2"],
    );
    assert_eq!(run(&same).code, Some(0));
    for (option, value) in [("--warm-up", "2"), ("--least-coverage", "60%"), ("--order", "random")] {
        let mut line = words("compare --arms base,system --runs 6", &[option, value, "--resume", log]);
        if option != "--warm-up" {
            line.extend(["--warm-up", "0"]);
        }
        line.extend(["--", "/bin/sleep", "0.2"]);
        let refused = run(&line);
        let is_named = refused.err.contains("its runs were made otherwise") && refused.err.contains(option);
        assert!(refused.code == Some(2) && is_named, "{option}: {}", refused.err);
    }
}

/// Runs that were judged by wall time cannot be continued by CPU time.
fn another_metric_is_refused(log: &str) {
    let line = "compare --arms base,system --metric cpu --resume";
    let refused = run(&words(line, &[log, "--", "/bin/sleep", "0.2"]));
    assert!(
        refused.code == Some(2) && refused.err.contains("it judges wall"),
        "{}",
        refused.err
    );
}

#[test]
fn a_ready_that_hangs_is_ended_and_named() {
    let mark = format!("3600.{}", std::process::id());
    let hangs = format!("sleep {mark}");
    let ended = run(&words(
        "compare --quiet --arms base,system --budget 1s",
        &["--ready", &hangs, "--load", "true", "--", "/bin/sleep", &mark],
    ));
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(
        ended
            .err
            .contains("--ready was still running after 1 s (its process group is ended)"),
        "{}",
        ended.err
    );
    assert_eq!(
        common::alive(std::path::Path::new(&mark)),
        0,
        "neither the question nor the server is left"
    );
}

#[test]
fn too_few_runs_are_said_before_the_first_one() {
    let ended = run(&words("compare --arms base,system --runs 2 --warm-up 0 -- true", &[]));
    let first = ended.err.lines().next().unwrap_or_default();
    assert!(
        first.contains("--runs 2 cannot show a difference") && first.contains("at least 6 runs"),
        "{}",
        ended.err
    );
}

#[test]
fn progress_has_lines_where_there_is_no_terminal() {
    let ended = run(&["compare", "--arms", "base,system", "--runs", "2", "--", "sleep", "1.6"]);
    let is_line = |line: &str| line.contains(" s left  ") && line.contains("block ");
    assert!(ended.err.lines().any(is_line), "{}", ended.err);
    let quiet = run(&words(
        "--quiet compare --arms base,system --runs 1 --warm-up 0 -- true",
        &[],
    ));
    assert!(!quiet.err.contains(" s left  "), "{}", quiet.err);
}

/// As in a container whose first process waits only for those that it started: who is orphaned comes to this process.
#[test]
fn a_comparison_that_has_ended_leaves_nobody_to_be_waited_for() {
    set_child_subreaper(Some(getpid())).expect("known since Linux 3.4");
    let run = run(&words("compare --arms base,system --runs 1 --warm-up 0 -- true", &[]));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let stats = std::fs::read_dir("/proc").expect("/proc").flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let own = std::process::id().to_string();
    let is_left = |stat: &String| {
        let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
        name.ends_with("(hugewise-guard") && rest.split(' ').nth(1) == Some(&own)
    };
    let left: Vec<String> = stats.filter(is_left).collect();
    assert!(left.is_empty(), "{left:?}");
}
