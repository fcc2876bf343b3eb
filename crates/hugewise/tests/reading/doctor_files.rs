//! Configuration files without a machine: kinds by names and contents, files judged together, bad lines with their place.

use std::path::Path;

use crate::common::{Run, refused, run, valid};
use serde_json::Value;

/// `doctor` with files of that content in a directory of their own.
fn doctor(files: &[(&str, &str)], words: &[&str]) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let mut args = vec!["doctor".to_owned()];
    for (name, content) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, content).expect("written");
        args.extend(["--file".to_owned(), path.display().to_string()]);
    }
    args.extend(words.iter().map(|&word| word.to_owned()));
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Ids of the findings, the worst first.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let data = valid(&doctor(files, &["--json"]).out)["data"].take();
    let findings = data["findings"].as_array().expect("findings");
    findings
        .iter()
        .map(|finding| finding["id"].as_str().expect("an id").to_owned())
        .collect()
}

const JAVA: (&str, &str) = (
    "start.sh",
    "#!/bin/sh\nexec /opt/jdk/bin/java -XX:+UseLargePages \\\n  -Xmx4g -jar app.jar\n",
);
const POSTGRES: (&str, &str) = ("postgresql.conf", "huge_pages = on\nshared_buffers = 2GB\n");

#[test]
fn files_are_judged_together_and_nothing_of_this_machine_comes_in() {
    let small = ("sysctl.d/60-pages.conf", "vm.nr_hugepages = 1200\n");
    assert_eq!(found(&[small, POSTGRES, JAVA]), ["E01"], "the second no longer fits");
    assert_eq!(
        found(&[("sysctl.d/60-pages.conf", "vm.nr_hugepages = 3400\n"), POSTGRES, JAVA]),
        [""; 0]
    );
    let run = doctor(&[small, POSTGRES, JAVA], &[]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.contains("139 of them left after other demands"), "{}", run.out);
    assert!(run.out.contains("60-pages.conf:1: pages of 2M = 1200"), "{}", run.out);
    let json = valid(&doctor(&[small], &["--json"]).out);
    assert_eq!(json["machine"]["kernel"]["unread"], "absent");
}

#[test]
fn what_files_cannot_tell_is_told_in_a_few_lines() {
    let sysctl = ("sysctl.conf", "vm.nr_hugepages = 10\n");
    let brief = doctor(&[sysctl], &[]).out;
    assert!(brief.starts_with("No fault found; of "), "{brief}");
    assert!(brief.contains("sysctl.conf: taken as sysctl\n"), "{brief}");
    let run = doctor(&[sysctl], &["--verbose"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let lines = run.out.lines().filter(|line| line.starts_with("  ")).count();
    assert!(lines < 8, "{}", run.out);
    assert!(run.out.contains("only a running machine shows it"), "{}", run.out);
    let nothing = doctor(&[("limits.conf", "* soft memlock 64\n")], &["--verbose"]);
    assert_eq!(nothing.code, Some(0), "its form alone is judged: {}", nothing.out);
    let reason = nothing.out.split_once("no file of that kind was given: ");
    let kinds = reason.map(|(_, kinds)| kinds.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(
        kinds.is_some_and(|kinds| kinds.contains("B03 D12 (unit)")),
        "{}",
        nothing.out
    );
}

#[test]
fn bad_lines_are_findings_with_their_place_and_bad_files_are_refused() {
    let run = doctor(
        &[("sysctl.conf", "vm.nr_hugepages 5\nvm.nr_overcommit_hugepages = 7\n")],
        &["--json"],
    );
    assert_eq!(run.code, Some(1), "the other line is judged: {}", run.err);
    let findings = valid(&run.out)["data"]["findings"].take();
    let refused = findings
        .as_array()
        .into_iter()
        .flatten()
        .find(|finding| finding["id"] == "I01");
    let place = refused.map(|finding| finding["evidence"][0]["source"].to_string());
    assert!(place.is_some_and(|place| place.contains("sysctl.conf:1")), "{findings}");
    for (name, content, place) in [
        ("pod.yaml", "apiVersion: v1\nkind: Pod\nspec: [\n", "pod.yaml:"),
        ("vm.xml", "<domain>\n<memory>\n</domain>\n", "vm.xml:3"),
        ("start.sh", "java -Xmx4g 'Main\n", "start.sh:1"),
    ] {
        let run = doctor(&[(name, content)], &[]);
        assert_eq!(run.code, Some(2), "{name}: {}", run.out);
        assert!(run.err.contains(place) && run.err.contains("--as"), "{}", run.err);
    }
}

#[test]
fn a_file_of_unknown_kind_has_to_be_named() {
    let notes = [("notes.txt", "hello\n")];
    let run = doctor(&notes, &[]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(
        run.err.contains("notes.txt: what kind of file is it?") && run.err.contains("--as sysctl|"),
        "{}",
        run.err
    );
    let run = doctor(&[("notes.txt", "vm.nr_hugepages = 5\n[mysqld]\n")], &[]);
    assert!(run.err.contains("could be sysctl or mysql"), "{}", run.err);
    assert_eq!(
        doctor(&[("notes.txt", "vm.nr_hugepages = 5\n")], &["--as", "sysctl"]).code,
        Some(0)
    );
    assert!(refused(&["doctor", "--file", "x", "--as", "dns"]).contains("is not a kind of file"));
    assert!(
        refused(&["doctor", "--file", "/nonexistent/x"]).contains("--file /nonexistent/x: the file cannot be read")
    );
    assert!(!Path::new("/nonexistent/x").exists());
}

#[test]
fn a_file_of_unknown_kind_leaves_the_others_judged() {
    let files = [("notes.txt", "hello\n"), ("sysctl.conf", "vm.nr_hugepages = 8G\n")];
    let run = doctor(&files, &[]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(run.out.contains("I01 setting-refused"), "{}", run.out);
    assert!(run.out.contains("not read: "), "{}", run.out);
    assert!(run.out.starts_with("1 file was not read. 0 errors, "), "{}", run.out);
    let well = doctor(&[files[0], ("sysctl.conf", "vm.nr_hugepages = 8\n")], &[]);
    assert!(
        well.out
            .starts_with("1 file was not read. No fault found in the rest; of "),
        "{}",
        well.out
    );
    assert!(run.err.contains("notes.txt: what kind of file is it?"), "{}", run.err);
    let json = doctor(&files, &["--json"]);
    let not_read = valid(&json.out)["data"]["not_read"].to_string();
    assert!(json.code == Some(2) && not_read.contains("notes.txt"), "{not_read}");
    let machine = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/cases/162-idle-beside-a-file/m.tree"
    );
    let run = doctor(&files[..1], &["--root", machine]);
    assert!(
        run.code == Some(2) && run.out.contains("A02 pool-idle"),
        "{}{}",
        run.out,
        run.err
    );
}

#[test]
fn findings_in_files_have_their_places_in_sarif_too() {
    let run = doctor(
        &[("sysctl.conf", "vm.nr_hugepages = 512\nkernel.shmmax = 33554432\n")],
        &["--format", "sarif"],
    );
    let log: Value = serde_json::from_str(&run.out).expect("JSON");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "B05");
    assert!(result["locations"].to_string().contains("sysctl.conf"), "{result}");
}
