//! Wrong words are refused in one message that says what to write; right ones end with the right code.

mod common;

use common::{done, refused, unread};

#[test]
fn wrong_words_name_the_flag_and_what_to_write() {
    for (args, parts) in [
        (&["measure", "latency", "--from", "16"][..], &["--from", "16K, 2M"][..]),
        (&["measure", "latency", "--pages", "huge"], &["--pages", "hugetlb-2M"]),
        (
            &["measure", "latency", "--from", "2M", "--to", "1M"],
            &["--from 2M", "--to 1M"],
        ),
        (
            &["measure", "latency", "--sizes", "1M", "--to", "2M"],
            &["--sizes", "--to", "cannot be used with"],
        ),
        (
            &["ps", "--format", "png"],
            &["--format png", "text, json, csv, markdown, html"],
        ),
        (&["ps", "--vmas"], &["<PID>"]),
        (&["ps", "4294967295"], &["process 4294967295"]),
        (&["schema", "nonsense"], &["nonsense", "checkup, ", ", vms)"]),
        (&["report", "/nonexistent.json"], &["/nonexistent.json"]),
        (
            &["ps", "--output", "/nonexistent/x.csv"],
            &["--output /nonexistent/x.csv"],
        ),
        (
            &["checkup", "--report", "/nonexistent/report.html"],
            &["/nonexistent/report.html", "--report"],
        ),
        (&["snapshot", "/nonexistent/x.tree"], &["/nonexistent/x.tree"]),
        (&[], &["Usage"]),
    ] {
        let run = common::run(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
        for part in parts {
            assert!(run.err.contains(part), "{args:?}: no `{part}` in {}", run.err);
        }
    }
}

#[test]
fn a_message_is_printed_once_and_under_the_program_s_name() {
    let told = refused(&["report", "/nonexistent.json"]);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(told.matches("No such file").count(), 1, "{told}");
}

#[test]
fn help_and_version_are_results() {
    assert!(done(&["--help"]).out.contains("checkup"));
    assert!(done(&["measure", "latency", "--help"]).out.contains("--no-pool"));
    assert!(done(&["--version"]).out.starts_with("hugewise "));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    unread(&["schema", "checkup"]);
}

#[test]
fn every_shell_gets_completions_and_every_result_a_schema() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(done(&["completions", shell]).out.contains("checkup"), "{shell}");
    }
    for name in done(&["schema"]).out.lines() {
        let schema: serde_json::Value = serde_json::from_str(&done(&["schema", name]).out).expect("JSON");
        assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
    }
}

#[test]
fn no_result_of_ours_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    for (content, part) in [
        ("{", "not JSON"),
        ("{}", "no `schema`"),
        (r#"{"schema":"hugewise/latency/99"}"#, "hugewise/latency/99"),
        (r#"{"schema":"hugewise/latency/2"}"#, "missing field"),
    ] {
        let file = directory.path().join("result.json");
        std::fs::write(&file, content).expect("written");
        let told = refused(&["report", file.to_str().expect("plain")]);
        assert!(told.contains(part) && told.contains("result.json"), "{content}: {told}");
    }
}
