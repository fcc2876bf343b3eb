//! The diagnosis of every captured machine in every form, and the exit codes that scripts rely on.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{Run, done, machine, machines, refused, run, text, valid};
use serde_json::Value;

fn doctor(machine: &Path, words: &[&str]) -> Run {
    run(&[&["--root", text(machine), "doctor"], words].concat())
}

/// The diagnosis that both its exit code and its schema allow.
fn diagnosis(machine: &Path) -> Value {
    let run = doctor(machine, &["--json"]);
    let data = valid(&run.out)["data"].take();
    let findings = data["findings"].as_array().expect("findings");
    let loud = findings.iter().any(|finding| finding["severity"] != "info");
    assert_eq!(run.code, Some(i32::from(loud)), "{machine:?}: {}", run.err);
    data
}

fn len(list: &Value) -> usize {
    list.as_array().expect("a list").len()
}

/// A captured machine with every file denied.
fn denied_throughout(archive: &Path) -> String {
    let whole = std::fs::read_to_string(archive).expect("an archive");
    let entries = whole.lines().filter(|line| !line.starts_with(['|', '#']));
    let denied = entries.map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        ["file" | "line" | "link" | "failed", path, ..] => format!("denied {path}\n"),
        _ => format!("{line}\n"),
    });
    denied.collect()
}

#[test]
fn every_machine_is_judged_in_every_form() {
    for (name, machine) in machines() {
        let data = diagnosis(&machine);
        let (found, not) = (len(&data["findings"]), len(&data["not_judged"]));
        let plain = doctor(&machine, &["--verbose"]).out;
        assert_eq!(plain.matches("\n  more  https://").count(), found, "{name}: {plain}");
        assert!(plain.contains(&format!("and {not} could")), "{name}: {plain}");
        let csv = doctor(&machine, &["--format", "csv"]).out;
        let lines = csv::Reader::from_reader(csv.as_bytes()).into_records().count();
        assert_eq!(lines, found + not, "{name}");
        let markdown = doctor(&machine, &["--format", "markdown"]).out;
        assert!(
            markdown.starts_with("# What is wrong here") && markdown.contains("## Provenance"),
            "{name}"
        );
        let html = doctor(&machine, &["--format", "html"]).out;
        assert!(html.trim_end().ends_with("</html>"), "{name}");
    }
}

#[test]
fn machines_that_are_set_up_well_end_with_zero() {
    for name in ["postgres-good", "desktop", "jvm-madvise", "kubernetes-node"] {
        let run = doctor(&machine(name), &[]);
        assert_eq!(run.code, Some(0), "{name}: {}", run.out);
        assert!(run.out.starts_with("No fault found"), "{name}: {}", run.out);
    }
}

#[test]
fn what_is_denied_is_not_judged_instead_of_well() {
    let data = diagnosis(&machine("denied"));
    let reasons = data["not_judged"].to_string();
    assert!(len(&data["not_judged"]) > 20, "{reasons}");
    for id in ["A01", "A03", "D09"] {
        assert!(reasons.contains(&format!("\"id\":\"{id}\"")), "{id}: {reasons}");
    }
    assert!(reasons.contains("denied: /proc/buddyinfo"), "{reasons}");
}

#[test]
fn a_machine_of_which_nothing_can_be_read_ends_with_two() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("proc")).expect("proc");
    let dark = directory.path().join("dark.tree");
    for (name, machine) in machines() {
        std::fs::write(&dark, denied_throughout(&machine)).expect("written");
        for root in [&dark, directory.path()] {
            let run = doctor(root, &["--json"]);
            assert_eq!(run.code, Some(2), "{name}: {}", run.out);
            assert!(
                run.err.contains("nothing that a rule needs could be read"),
                "{}",
                run.err
            );
            let data = valid(&run.out)["data"].take();
            assert_eq!(data["rules"], len(&data["not_judged"]), "{name}");
            assert_eq!(len(&data["findings"]), 0, "{name}");
        }
    }
}

#[test]
fn the_exit_code_follows_the_least_severity_asked_for() {
    let code = |name, least| doctor(&machine(name), &["--fail-on", least]).code;
    // Two errors.
    assert_eq!(code("cgroup-v2", "error"), Some(1));
    // A warning, no error.
    assert_eq!(code("arm64-64k", "error"), Some(0));
    assert_eq!(code("arm64-64k", "warning"), Some(1));
    // Worth knowing only.
    assert_eq!(code("desktop", "warning"), Some(0));
    assert_eq!(code("desktop", "info"), Some(1));
    // Nothing at all.
    assert_eq!(code("postgres-good", "info"), Some(0));
    let told = refused(&["doctor", "--fail-on", "fatal"]);
    assert!(told.contains("write info, warning, error"), "{told}");
}

#[test]
fn the_machine_that_runs_this_can_be_judged() {
    let run = run(&["doctor", "--json"]);
    assert!(matches!(run.code, Some(0 | 1)), "{:?}: {}", run.code, run.err);
    let data = valid(&run.out)["data"].take();
    let ids = |list: &str| -> BTreeSet<&str> {
        let list = data[list].as_array().expect("a list");
        list.iter().filter_map(|entry| entry["id"].as_str()).collect()
    };
    let rules = done(&["doctor", "--rules"]).out;
    let is_id = |word: &&str| {
        word.len() == 3
            && word.starts_with(|first: char| first.is_ascii_uppercase())
            && word[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    let first_words = rules.lines().filter_map(|line| line.split_whitespace().next());
    let rules: BTreeSet<&str> = first_words.filter(is_id).collect();
    assert_eq!(data["rules"], rules.len());
    // A rule that could not be judged has found nothing, and some could be judged.
    let (found, unjudged) = (ids("findings"), ids("not_judged"));
    assert!(found.is_subset(&rules) && unjudged.is_subset(&rules), "{data}");
    assert!(found.is_disjoint(&unjudged) && unjudged.len() < rules.len(), "{data}");
}

#[test]
fn rules_are_explained_offline_and_near_ones_are_named() {
    let told = done(&["doctor", "--explain", "a02"]).out;
    assert!(told.starts_with("A02 pool-idle (warning; "), "{told}");
    assert_eq!(told, done(&["doctor", "--explain", "Pool-Idle"]).out);
    let told = refused(&["doctor", "--explain", "pool-idel"]);
    assert!(told.contains("nearest are A02 pool-idle"), "{told}");
    let told = refused(&["doctor", "--explain", "A02", "--json"]);
    assert!(told.contains("write text"), "{told}");
}

#[test]
fn files_are_judged_beside_the_machine_that_root_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("db.vmx");
    let judge = |content: &str| {
        std::fs::write(&file, content).expect("written");
        doctor(&machine("postgres-good"), &["--file", text(&file)])
    };
    let bad = judge("memSize = \"65536\"\nsched.mem.lpage.enable1GPage = \"TRUE\"\n");
    assert_eq!(bad.code, Some(1), "{}", bad.err);
    assert!(
        bad.out.contains("error G06") && bad.out.contains("db.vmx"),
        "{}",
        bad.out
    );
    let good = judge("memSize = \"65536\"\n");
    assert!(good.code == Some(0) && !good.out.contains("G06"), "{}", good.out);
}

#[test]
fn sarif_has_a_level_a_rule_a_message_and_places_for_every_finding() {
    for (name, machine) in machines() {
        let data = diagnosis(&machine);
        let log: Value = serde_json::from_str(&doctor(&machine, &["--format", "sarif"]).out).expect("JSON");
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let rules = &run["tool"]["driver"]["rules"];
        assert_eq!(data["rules"], len(rules), "{name}");
        let results = run["results"].as_array().expect("results");
        assert_eq!(results.len(), len(&data["findings"]), "{name}");
        for (result, finding) in results.iter().zip(data["findings"].as_array().expect("findings")) {
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(rules[index]["id"], result["ruleId"], "{name}");
            assert_eq!(result["ruleId"], finding["id"], "{name}");
            let level = result["level"].as_str().expect("a level");
            assert!(["error", "warning", "note"].contains(&level), "{name}: {level}");
            let message = result["message"]["text"].as_str().expect("a message");
            assert!(
                message.starts_with(finding["consequence"].as_str().expect("words")),
                "{name}"
            );
            assert_eq!(len(&result["locations"]), len(&finding["evidence"]), "{name}");
            for place in result["locations"].as_array().expect("places") {
                assert!(
                    place["physicalLocation"].is_object() != place["logicalLocations"].is_array(),
                    "{name}: {place}"
                );
            }
        }
        let told = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(len(told), len(&data["not_judged"]), "{name}");
    }
}

/// Name and labels of a sample of the text exposition format, whose value must be a number.
fn sample(line: &str) -> (&str, &str) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    value.parse::<f64>().expect("a number");
    let (name, labels) = series.split_once('{').expect("labels");
    let labels = labels.strip_suffix('}').expect("closed labels");
    for label in labels.split(',') {
        let (key, value) = label.split_once('=').expect("key=value");
        assert!(key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
        assert!(
            value.len() >= 2 && value.starts_with('"') && value.ends_with('"'),
            "{line}"
        );
    }
    (name, labels)
}

#[test]
fn prometheus_text_has_typed_families_and_no_line_twice() {
    for (name, machine) in machines() {
        let data = diagnosis(&machine);
        let told = doctor(&machine, &["--format", "prometheus"]).out;
        let (mut typed, mut seen, mut findings) = (BTreeSet::new(), BTreeSet::new(), 0);
        for line in told.lines() {
            if let Some(words) = line.strip_prefix("# TYPE ") {
                let family = words.strip_suffix(" gauge").expect("a gauge");
                assert!(typed.insert(family), "{name}: {family} twice");
            } else if !line.starts_with("# HELP ") {
                let (family, labels) = sample(line);
                assert!(typed.contains(family), "{name}: {line} before its type");
                assert!(seen.insert((family, labels)), "{name}: {line} twice");
                if family == "hugewise_rule_findings" {
                    findings += line
                        .rsplit_once(' ')
                        .expect("a value")
                        .1
                        .parse::<usize>()
                        .expect("a count");
                }
            }
        }
        assert!(told.ends_with('\n'), "{name}");
        assert_eq!(findings, len(&data["findings"]), "{name}");
    }
}

#[test]
fn a_diagnosis_is_kept_and_shown_again_by_its_file_s_extension() {
    let directory = tempfile::tempdir().expect("a directory");
    let machine = machine("cgroup-v2");
    let file = |name: &str| directory.path().join(name);
    let keep = |name: &str| {
        let run = doctor(&machine, &["--output", text(&file(name))]);
        assert_eq!(run.code, Some(1), "{name}: {}", run.err);
    };
    keep("d.json");
    keep("d.sarif");
    keep("d.prom");
    let again = done(&["report", text(&file("d.json")), "--format", "sarif"]).out;
    let (again, first): (Value, Value) = (
        serde_json::from_str(&again).expect("JSON"),
        serde_json::from_str(&std::fs::read_to_string(file("d.sarif")).expect("kept")).expect("JSON"),
    );
    assert_eq!(again["runs"][0]["results"], first["runs"][0]["results"]);
    let metrics = std::fs::read_to_string(file("d.prom")).expect("kept");
    assert_eq!(
        metrics,
        done(&["report", text(&file("d.json")), "--format", "prometheus"]).out
    );
    let told = refused(&["--root", text(&machine), "ps", "--format", "sarif"]);
    assert!(told.contains("this result has no such format"), "{told}");
}

#[test]
fn a_checkup_has_the_findings_and_can_leave_them_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let machine = machine("cgroup-v2");
    let root = text(&machine);
    let checkup = |words: &[&str]| done(&[&["--root", root, "checkup", "--report", text(&report)], words].concat()).out;
    let told = checkup(&[]);
    let table = told.find("\nFindings\n").expect("the findings");
    assert!(
        told.find("\nWhat to type next\n").is_some_and(|at| at < table),
        "{told}"
    );
    assert!(
        told[table..].contains("C01") && told[table..].contains("2 errors, 0 warnings"),
        "{told}"
    );
    let html = std::fs::read_to_string(&report).expect("the report");
    assert!(
        html.contains("hugetlb.2MB.events: max = 7"),
        "the evidence is in the report"
    );
    let data = valid(&checkup(&["--json"]))["data"]["doctor"].take();
    assert_eq!(data["findings"], diagnosis(&machine)["findings"]);
    let told = checkup(&["--skip", "doctor"]);
    assert!(
        !told.contains("\nFindings\n") && told.contains("skipped by --skip doctor"),
        "{told}"
    );
}
