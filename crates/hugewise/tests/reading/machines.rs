//! Every command that reads a machine works on every captured one, and says what it could not read.

use std::path::Path;

use crate::common::{done, has_processes, hugewise, machine, machines, refused, text, told, valid};
use serde_json::Value;

/// The inventory of a captured machine, by a checkup that can read but not measure.
fn checkup(machine: &Path) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let run = done(&["--root", text(machine), "checkup", "--json", "--report", text(&report)]);
    let html = std::fs::read_to_string(&report).expect("the report");
    assert!(html.contains("Free memory in large pieces"), "{machine:?}");
    let file = std::fs::read_to_string(directory.path().join("result.json")).expect("the result");
    assert_eq!(file, run.out, "the file and standard output are the same result");
    valid(&run.out)
}

#[test]
fn a_checkup_reads_every_machine_and_says_that_it_cannot_measure() {
    for (name, machine) in machines() {
        let result = checkup(&machine);
        let data = &result["data"];
        assert_eq!(data["verdict"]["sentences"].as_array().map(Vec::len), Some(3), "{name}");
        assert_eq!(data["verdict"]["saving"]["outcome"], "not-measured", "{name}");
        assert_eq!(data["verdict"]["choice"]["outcome"], "unknown", "{name}");
        assert!(data["latency"].is_null(), "{name}");
        let skipped = data["skipped"].to_string();
        assert!(
            skipped.contains("not measured") && skipped.contains("latency"),
            "{name}: {skipped}"
        );
        assert!(
            data["inventory"]["kernel"]["release"].is_string()
                || data["inventory"]["kernel"]["release"]["unread"].is_string(),
            "{name}"
        );
    }
}

#[test]
fn verdicts_name_what_stands_in_the_way_on_each_machine() {
    let way = |name: &str| {
        let machine = machine(name);
        checkup(&machine)["data"]["verdict"]["sentences"][2]
            .as_str()
            .expect("a sentence")
            .to_owned()
    };
    assert!(
        way("no-thp").starts_with("THP is not available (absent: "),
        "{}",
        way("no-thp")
    );
    assert!(
        way("no-hugetlb").contains("There are no hugetlb pools (absent: "),
        "{}",
        way("no-hugetlb")
    );
    assert!(way("pool-1g").contains("pages of 1G ("), "{}", way("pool-1g"));
}

#[test]
fn processes_are_listed_in_every_form() {
    for (name, machine) in machines() {
        let root = text(&machine);
        if !has_processes(&machine) {
            let why = refused(&["--root", root, "ps"]);
            assert!(why.contains("no process"), "{name}: {why}");
            continue;
        }
        assert!(
            done(&["--root", root, "ps"])
                .out
                .contains("Page kinds behind processes"),
            "{name}"
        );
        let result = valid(&done(&["--root", root, "ps", "--json"]).out);
        let listed = result["data"]["processes"].as_array().map(Vec::len).expect("processes");
        let csv = done(&["--root", root, "ps", "--format", "csv"]).out;
        assert_eq!(csv.lines().count(), listed + 1, "{name}");
        assert!(
            done(&["--root", root, "ps", "--format", "markdown"])
                .out
                .contains("## Provenance"),
            "{name}"
        );
        let html = done(&["--root", root, "ps", "--format", "html"]).out;
        assert!(
            html.ends_with(
                "</html>
"
            ),
            "{name}"
        );
    }
}

#[test]
fn a_capture_of_a_capture_tells_the_same() {
    for (name, machine) in machines() {
        let directory = tempfile::tempdir().expect("a directory");
        let again = directory.path().join("again.tree");
        done(&["--root", text(&machine), "snapshot", text(&again)]);
        let inventory = |path: &Path| {
            let mut inventory = checkup(path)["data"]["inventory"].take();
            inventory["source"] = Value::Null;
            inventory
        };
        let (first, second) = (inventory(&machine), inventory(&again));
        for (part, value) in first.as_object().expect("an object") {
            assert_eq!(values(value), values(&second[part]), "{name}: {part}");
        }
    }
}

/// The same without the reasons: whether a directory is denied or absent is the capture's business.
fn values(part: &Value) -> Value {
    match part {
        Value::Object(fields) if fields.contains_key("unread") => Value::Null,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), values(field)))
            .collect(),
        Value::Array(items) => items.iter().map(values).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_garbled_capture_names_file_and_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("bad.tree");
    std::fs::write(&file, "this is no archive\n").expect("written");
    let told = refused(&["--root", text(&file), "ps"]);
    assert!(told.contains("bad.tree") && told.contains(":1"), "{told}");
    let told = refused(&["--root", "/nonexistent.tree", "ps"]);
    assert!(
        told.contains("/nonexistent.tree") && told.contains(".tree archive"),
        "{told}"
    );
}

#[test]
fn a_snapshot_is_not_overwritten_without_a_yes() {
    let (_, machine) = machines().swap_remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("one.tree");
    std::fs::write(&file, "precious").expect("written");
    let told = refused(&["--root", text(&machine), "snapshot", text(&file)]);
    assert!(
        told.contains("one.tree exists already") && told.contains("--yes"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "precious");
    done(&["--root", text(&machine), "snapshot", text(&file), "--yes"]);
    assert_ne!(std::fs::read_to_string(&file).expect("replaced"), "precious");
}

#[test]
fn a_checkup_replaces_its_own_files_and_no_others() {
    let (_, machine) = machines().swap_remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    let [report, result] = ["page.html", "result.json"].map(|name| directory.path().join(name));
    let args = ["--root", text(&machine), "checkup", "--report", text(&report)];
    done(&args);
    done(&args);
    std::fs::write(&result, "{\"mine\": 1}").expect("written");
    let told = refused(&args);
    assert!(
        told.contains("result.json: there is a file that hugewise did not write"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(&result).expect("still there"), "{\"mine\": 1}");
    done(&[&args[..], &["--yes"]].concat());
    assert!(
        std::fs::read_to_string(&result)
            .expect("replaced")
            .contains("hugewise/checkup")
    );
}

#[test]
fn a_checkup_whose_json_goes_to_an_output_leaves_no_second_one() {
    let (_, machine) = machines().swap_remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    let [report, output] = ["page.html", "mine.json"].map(|name| directory.path().join(name));
    let args = [
        "--root",
        text(&machine),
        "checkup",
        "--report",
        text(&report),
        "--output",
        text(&output),
    ];
    done(&args);
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["mine.json", "page.html"]);
}

#[test]
fn a_checkup_as_csv_is_a_table_for_each_part() {
    let machine = machine("cgroup-v2");
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("page.html");
    let csv = done(&[
        "--root",
        text(&machine),
        "checkup",
        "--format",
        "csv",
        "--report",
        text(&report),
    ])
    .out;
    let parts: Vec<&str> = csv
        .split("\n\n")
        .map(|part| part.lines().next().expect("a name"))
        .collect();
    assert_eq!(parts, ["# findings", "# processes", "# virtual machines"]);
    for part in csv.split("\n\n") {
        let table = part.split_once('\n').expect("a table").1;
        let rows = csv::Reader::from_reader(table.as_bytes()).into_records();
        assert!(rows.into_iter().all(|row| row.is_ok()), "{part}");
    }
}

#[test]
fn measuring_needs_the_machine_itself() {
    let (_, machine) = machines().swap_remove(0);
    let told = refused(&["--root", text(&machine), "measure", "latency"]);
    assert!(told.contains("leave --root away"), "{told}");
}

#[test]
fn colours_stay_away_from_pipes_and_come_when_forced() {
    let machine = machine("cgroup-v2");
    let args = ["--root", text(&machine), "ps"];
    assert!(!done(&args).out.contains('\u{1b}'));
    let forced = told(hugewise(&args).env("CLICOLOR_FORCE", "1").output().expect("runs"));
    assert!(forced.out.contains('\u{1b}'), "{}", forced.out);
    let refused = told(
        hugewise(&args)
            .arg("--no-color")
            .env("CLICOLOR_FORCE", "1")
            .output()
            .expect("runs"),
    );
    assert!(!refused.out.contains('\u{1b}'), "{}", refused.out);
}
