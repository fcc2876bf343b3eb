//! `diff`: two results of each kind, two machines, what cannot be compared, and the exit code.

use std::path::{Path, PathBuf};

use crate::common::{done, machine, refused, run, text, valid};
use serde_json::{Value, json};

/// The result of a command as a file.
fn result(folder: &Path, name: &str, words: &[&str]) -> PathBuf {
    let file = folder.join(name);
    done(&[words, &["--json", "--output", text(&file)]].concat());
    file
}

/// The same file with something changed.
fn edited(file: &Path, name: &str, edit: impl FnOnce(&mut Value)) -> PathBuf {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
    edit(&mut value);
    let changed = file.with_file_name(name);
    std::fs::write(&changed, value.to_string()).expect("written");
    changed
}

fn diff(a: &Path, b: &Path) -> Value {
    let result = valid(&done(&["diff", text(a), text(b), "--json"]).out);
    assert_eq!(result["schema"], "hugewise/diff/2");
    result["data"].clone()
}

fn latency(folder: &Path, name: &str) -> PathBuf {
    let words = [
        "measure",
        "latency",
        "--pages",
        "base,thp",
        "--sizes",
        "64K,256K",
        "--budget",
        "2s",
        "--no-pool",
    ];
    result(folder, name, &words)
}

#[test]
fn two_measurements_made_here_have_an_interval_and_a_verdict_for_each_point() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (latency(folder.path(), "a.json"), latency(folder.path(), "b.json"));
    let data = diff(&a, &b);
    let points = data["points"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 4);
    for point in points {
        assert!(
            point["verdict"].is_string() && (point["ratio"].is_number() || point["gap"].is_string()),
            "{point}"
        );
    }
    let html = done(&["diff", text(&a), text(&b), "--format", "html"]).out;
    // Where THP is never given, or others use the caches all the time, its points have no number.
    for kind in ["base", "thp"] {
        let is_of = |point: &&Value| point.to_string().contains(&format!("\"{kind}\""));
        let is_drawn = |point: &Value| point["a"].is_object() || point["b"].is_object();
        let has_number = points.iter().filter(is_of).any(is_drawn);
        assert_eq!(
            html.contains(&format!("Time of one step on {kind}")),
            has_number,
            "{kind}"
        );
    }
    assert!(html.contains(">A<") && html.contains(">B<"));
    let text = done(&["diff", text(&a), text(&b)]).out;
    // On a busy machine a run may give a point no number.
    let with_ratio = points.iter().filter(|point| point["ratio"].is_number()).count();
    let counted = format!(
        "Of {with_ratio} point{} in both",
        if with_ratio == 1 { "" } else { "s" }
    );
    assert!(with_ratio == 0 || text.contains(&counted), "{text}");
}

#[test]
fn a_result_that_is_twice_as_slow_fails_a_ci_job_and_the_same_result_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = edited(&latency(folder.path(), "a.json"), "many.json", |result| {
        for point in result["data"]["points"].as_array_mut().expect("points") {
            point["visits"] = (0..12).map(|at| 10.0 + f64::from(at) / 100.0).collect();
        }
    });
    let slow = edited(&a, "slow.json", |result| {
        for point in result["data"]["points"].as_array_mut().expect("points") {
            point["visits"] = (0..12).map(|at| 20.0 + f64::from(at) / 100.0).collect();
        }
    });
    let code = |a: &Path, b: &Path, words: &[&str]| run(&[&["diff", text(a), text(b)], words].concat()).code;
    assert_eq!(code(&a, &slow, &[]), Some(0));
    assert_eq!(code(&a, &slow, &["--fail-if", "worse"]), Some(1));
    assert_eq!(code(&slow, &a, &["--fail-if", "worse"]), Some(0));
    assert_eq!(code(&a, &a, &["--fail-if", "worse,inconclusive,settings"]), Some(0));
    assert_eq!(code(&a, &slow, &["--fail-if", "worse", "--allow", "100%"]), Some(0));
}

#[test]
fn two_machines_differ_by_settings_findings_and_page_kinds() {
    let (good, other) = (machine("postgres-good"), machine("desktop"));
    let data = diff(&good, &other);
    let changed = |list: &str, key: &str, value: &str| {
        let list = data[list].as_array().expect("a list");
        list.iter().any(|change| change[key] == value)
    };
    assert!(changed("settings", "setting", "thp.enabled"), "{data}");
    assert!(data["findings"].as_array().is_some_and(|all| !all.is_empty()), "{data}");
    assert!(changed("backing", "name", "postgres"), "{data}");
    assert!(data["points"].is_null());
    let same = diff(&good, &good);
    for list in ["settings", "findings", "backing"] {
        assert_eq!(same[list], json!([]), "{list}");
    }
    let code = |what: &str| run(&["diff", text(&good), text(&other), "--fail-if", what]).code;
    assert_eq!(code("settings"), Some(1));
    assert_eq!(
        code("worse"),
        Some(2),
        "there are no points, so nothing was shown to be as good"
    );
    let denied = machine("denied");
    let gate = run(&["diff", text(&denied), text(&denied), "--fail-if", "backing"]);
    assert_eq!(
        gate.code,
        Some(2),
        "processes that could not be read are not as good as before"
    );
    assert_eq!(diff(&denied, &denied)["unseen"]["a"]["remedy"], "snapshot-with-sudo");
}

#[test]
fn every_kind_of_result_is_compared_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["doctor", "ps", "checkup"] {
        // A machine that differs in what the command lists.
        let other = if command == "ps" { "jvm-madvise" } else { "cgroup-v2" };
        let roots = [machine("postgres-good"), machine(other)];
        let [a, b] = roots.each_ref().map(|root| {
            let file = folder.path().join(format!(
                "{command}-{}.json",
                root.file_stem().and_then(|stem| stem.to_str()).expect("a name")
            ));
            let report = folder.path().join("report.html");
            let more: &[&str] = if command == "checkup" {
                &["--report", text(&report)]
            } else {
                &[]
            };
            let words = [
                &["--root", text(root), command, "--json", "--output", text(&file)],
                more,
            ]
            .concat();
            // doctor ends with 1 where it found something.
            assert!(matches!(run(&words).code, Some(0 | 1)), "{words:?}");
            file
        });
        let data = diff(&a, &b);
        assert_eq!(data["a"]["what"], command);
        assert_eq!(data["findings"].is_null(), command == "ps", "{data}");
        assert_ne!(a, b, "two results, not one twice");
        // What differs between these two machines, by the JSON: each form shows it.
        let changed = match command {
            "ps" => "postgres",
            _ => data["findings"][0]["name"].as_str().expect("a finding"),
        };
        for form in ["text", "csv", "markdown", "html"] {
            let shown = done(&["diff", text(&a), text(&b), "--format", form]).out;
            assert!(shown.contains(changed), "{command} {form}: no {changed} in {shown}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = machine("postgres-good");
    let ps = result(folder.path(), "ps.json", &["--root", text(&root), "ps"]);
    let one = result(
        folder.path(),
        "one.json",
        &["--root", text(&root), "ps", "--name", "postgres"],
    );
    let old = edited(&ps, "old.json", |result| result["schema"] = "hugewise/ps/1".into());
    let plan = edited(&ps, "plan.json", |result| result["schema"] = "hugewise/plan/3".into());
    let broken = edited(&ps, "broken.json", |result| result["data"] = json!({}));
    let garbage = folder.path().join("garbage");
    std::fs::write(&garbage, "neither\n").expect("written");
    let nothing = folder.path().join("nothing.json");
    for (a, b, named, told) in [
        (&root, &ps, &ps, "make both with the same command"),
        (&ps, &one, &one, "give `ps` the same options for both"),
        (&ps, &old, &old, "`hugewise/ps/1` cannot be compared"),
        (&plan, &ps, &plan, "make both results with this version"),
        (&ps, &broken, &broken, "not of the shape that its schema says"),
        (
            &garbage,
            &ps,
            &garbage,
            "neither a result of hugewise (JSON) nor a captured machine",
        ),
        (&ps, &nothing, &nothing, "No such file"),
    ] {
        let why = refused(&["diff", text(a), text(b)]);
        assert!(why.contains(text(named)) && why.contains(told), "{why}");
    }
    let why = refused(&["--root", text(&root), "diff", text(&ps), text(&ps)]);
    assert!(why.contains("leave --root away"), "{why}");
}

#[test]
fn comparisons_are_compared_by_what_each_arm_gained() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["compare", "--arms", "base,thp", "--runs", "6", "--json", "--output"];
    let file = folder.path().join("a.json");
    done(
        &[
            &words[..],
            &[
                text(&file),
                "--",
                "dd",
                "if=/dev/zero",
                "of=/dev/null",
                "bs=8M",
                "count=10",
                "status=none",
            ],
        ]
        .concat(),
    );
    let a = edited(&file, "first.json", |result| gained(result, 1.10));
    let b = edited(&file, "second.json", |result| gained(result, 1.50));
    let points = diff(&a, &b)["points"]["points"].clone();
    let point = &points[0];
    assert_eq!(
        (&point["arm"], &point["verdict"]),
        (&json!("thp"), &json!("better")),
        "{points}"
    );
    let (low, high) = (
        point["low"].as_f64().expect("low"),
        point["high"].as_f64().expect("high"),
    );
    assert!(low < 1.5 / 1.1 && high > 1.5 / 1.1 && low > 1.05, "{point}");
}

/// Puts a gain with an interval of one percent to each side in place of the measured ones.
fn gained(result: &mut Value, ratio: f64) {
    for verdict in result["data"]["verdicts"].as_array_mut().expect("verdicts") {
        for (key, value) in [("ratio", ratio), ("low", ratio * 0.99), ("high", ratio * 1.01)] {
            verdict[key] = value.into();
        }
    }
}
