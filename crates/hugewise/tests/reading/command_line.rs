//! Wrong words are refused in one message that says what to write; right ones end with the right code.

use crate::common::{done, refused, unread};

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
        (&["ps", "--format", "png"], &["--format", "png", "svg"]),
        (
            &["ps", "--format", "svg"],
            &["--format svg", "text, json, csv, markdown, html"],
        ),
        (&["ps", "--vmas"], &["<PID>"]),
        (
            &["compare"],
            &["nothing to compare", "-- PROGRAM", "--workload NAME", "--live PID"],
        ),
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
        is_refused_with(args, parts);
    }
}

#[test]
fn wrong_words_of_simulate_name_the_flag_and_what_to_write() {
    for (args, parts) in [
        (
            &["simulate", "translation", "--machine", "xeon-1"][..],
            &["--machine", "xeon-1", "xeon-8452y"][..],
        ),
        (
            &["simulate", "translation", "--machine", "/nonexistent.toml"],
            &["--machine /nonexistent.toml"],
        ),
        (
            &["simulate", "translation", "--pattern", "walk"],
            &["--pattern", "chase"],
        ),
        (
            &[
                "simulate",
                "translation",
                "--machine",
                "8452y",
                "--baseline",
                "nested:4K/2M",
            ],
            &["baseline"],
        ),
        (
            &["simulate", "translation", "--machine", "x5560", "--pages", "1G"],
            &["xeon-x5560", "1G", "4K, 2M"],
        ),
        (
            &[
                "simulate",
                "translation",
                "--machine",
                "opteron-885",
                "--mode",
                "nested",
            ],
            &["opteron-885", "--mode shadow"],
        ),
    ] {
        is_refused_with(args, parts);
    }
}

fn is_refused_with(args: &[&str], parts: &[&str]) {
    let run = crate::common::run(args);
    assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
    for part in parts {
        assert!(run.err.contains(part), "{args:?}: no `{part}` in {}", run.err);
    }
}

#[test]
fn a_word_that_means_a_command_leads_to_it() {
    for (args, part) in [
        (&["latency"][..], "hugewise measure latency;"),
        (&["check"], "hugewise checkup;"),
        (&["revert"], "hugewise undo;"),
        (&["docter"], "'doctor'"),
        (&["measure", "latancy"], "'latency'"),
        (&["ps", "postgres"], "hugewise explain postgres"),
        (&["compare", "true"], "hugewise compare -- true"),
    ] {
        is_refused_with(args, &[part]);
    }
}

#[test]
fn sizes_and_pages_are_written_alike_everywhere() {
    for (one, other) in [
        (&["size", "jvm", "2g"][..], &["size", "jvm", "--heap", "2G"][..]),
        (&["size", "vm", "64G"], &["size", "vm", "--memory", "64G"]),
        (&["size", "oracle", "20G"], &["size", "oracle", "--sga", "20G"]),
        (&["size", "innodb", "20G"], &["size", "innodb", "--buffer-pool", "20G"]),
        (&["size", "redis", "20G"], &["size", "redis", "--maxmemory", "20G"]),
        (
            &["size", "pages", "6G", "--pages", "thp"],
            &["size", "pages", "6G", "--pages", "2M"],
        ),
    ] {
        assert_eq!(done(one).out, done(other).out, "{one:?}");
    }
    is_refused_with(&["size", "jvm"], &["required", "<SIZE>"]);
    is_refused_with(
        &["size", "reach", "--pages", "3K"],
        &["--pages", "3K", "such as 4K, 2M or 1G"],
    );
    is_refused_with(
        &["size", "pages", "6G", "--pages", "1K"],
        &["--pages", "1K", "not a page size"],
    );
    is_refused_with(&["size", "reach", "--entries", "0"], &["--entries", "0 is not in 1.."]);
    is_refused_with(&["size", "jvm", "2G", "--heap", "3G"], &["cannot be used with"]);
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
