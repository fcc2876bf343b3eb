//! Commands that are compared with each other, what a time can show, and results that are judged anew.

mod common;

use std::time::{Duration, Instant};

use common::{refused, run, valid};

#[test]
fn two_commands_are_compared_with_names_preparation_parameters_and_exported_times() {
    let folder = tempfile::tempdir().expect("a directory");
    let [made, exported, cleaned] =
        ["made", "exported.json", "cleaned"].map(|name| folder.path().join(name).display().to_string());
    let (prepare, cleanup) = (format!("echo x >> {made}"), format!("echo x >> {cleaned}"));
    let [first, second] = ["sleep 0.01", "sleep 0.06"];
    let options = [
        "--json",
        "--quiet",
        "-n",
        "short",
        "-n",
        "long",
        "--runs",
        "8",
        "--fail-if",
        "worse",
    ];
    let around = ["--prepare", &prepare, "--cleanup", &cleanup, "--export-json", &exported];
    let ended = run(&[&["compare"], &options[..], &around[..], &[first, second]].concat());
    let result = valid(&ended.out);
    let data = &result["data"];
    let judged = &data["verdicts"][0];
    assert_eq!(
        (ended.code, judged["arm"].as_str()),
        (Some(1), Some("long")),
        "{judged} {}",
        ended.err
    );
    assert_eq!(judged["verdict"], "worse");
    assert!(data["arms"][0]["coverage"].is_object() && data["arms"][0]["kind"].is_null());
    let lines = |path: &str| std::fs::read_to_string(path).expect("made").lines().count();
    // Both arms' warm-up runs, and three runs of eight blocks; the cleanup of each command once.
    assert_eq!((lines(&made), lines(&cleaned)), (26, 2));
    let exported: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&exported).expect("made")).expect("JSON");
    assert_eq!(exported["results"][1]["command"], "long");
    let times = exported["results"][1]["times"].as_array().expect("times");
    assert!(times.len() == 8 && times.iter().all(|time| time.as_f64() > Some(0.05)));
}

#[test]
fn parameters_make_commands_and_a_word_alone_is_refused_with_what_to_write() {
    let ended = run(&[
        "compare",
        "--json",
        "--quiet",
        "--runs",
        "1",
        "-w",
        "0",
        "-N",
        "-L",
        "time",
        "0.01,0.02,0.03",
        "sleep {time}",
    ]);
    let arms = valid(&ended.out)["data"]["arms"].as_array().map(Vec::len);
    assert_eq!((ended.code, arms), (Some(0), Some(3)), "{}", ended.err);
    assert!(refused(&["compare", "sleep 1"]).contains("hugewise compare -- sleep 1"));
    assert!(refused(&["compare", "-N", "true 'x", "true"]).contains("quote ' is not closed"));
}

#[test]
fn a_budget_bounds_warm_up_runs_and_programs_that_do_not_end() {
    let began = Instant::now();
    let ended = run(&[
        "compare",
        "--quiet",
        "--json",
        "--budget",
        "3s",
        "--warm-up",
        "4294967295",
        "--runs",
        "6",
        "-N",
        "sleep 0.001",
        "sleep 0.002",
    ]);
    assert!(matches!(ended.code, Some(0 | 2)), "{}", ended.err);
    let error = refused(&["compare", "--quiet", "--budget", "1s", "sleep 3600.25", "sleep 3600.25"]);
    assert!(
        error.contains("--budget 1s: the time was over before a whole block"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(3600));
}

#[test]
fn what_a_time_can_show_is_told_by_a_program_compared_with_itself() {
    let ended = run(&[
        "compare",
        "--json",
        "--quiet",
        "--what-can-be-seen",
        "10m",
        "--",
        "/bin/sleep",
        "0.01",
    ]);
    let result = valid(&ended.out);
    let forecast = &result["data"]["forecast"];
    assert_eq!(forecast["metric"], "wall", "{} {}", ended.out, ended.err);
    let visible = forecast["visible"].as_array().expect("times");
    let effect = |at: usize| visible[at]["effect"].as_f64().expect("a number");
    assert!(
        effect(0) > 0.0 && effect(1) > effect(0),
        "a quarter of the time shows less: {forecast}"
    );
}

#[test]
fn a_result_is_judged_anew_and_refused_where_its_runs_do_not_add_up() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("result.json");
    let name = file.to_str().expect("a name");
    let made = run(&[
        "compare",
        "--json",
        "--quiet",
        "--runs",
        "6",
        "-w",
        "0",
        "--output",
        name,
        "sleep 0.01",
        "sleep 0.05",
    ]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let again = run(&["report", "--recheck", name, "--json"]);
    let (before, after) = (std::fs::read_to_string(&file).expect("made"), valid(&again.out));
    let before: serde_json::Value = serde_json::from_str(&before).expect("JSON");
    assert_eq!(before["data"]["verdicts"], after["data"]["verdicts"]);
    let wide = valid(
        &run(&[
            "report",
            "--recheck",
            name,
            "--json",
            "--metric",
            "memory",
            "--smallest-effect",
            "100%",
        ])
        .out,
    );
    assert_eq!(wide["data"]["verdicts"][0]["metric"], "memory");
    let mut wrong = before;
    // Versions that only added to it are read, and shown as this one.
    wrong["schema"] = "hugewise/compare/3".into();
    std::fs::write(&file, wrong.to_string()).expect("written");
    for words in [
        &["report", name, "--json"][..],
        &["report", "--recheck", name, "--json"],
    ] {
        assert_eq!(valid(&run(words).out)["schema"], "hugewise/compare/4");
    }
    wrong["schema"] = "hugewise/compare/2".into();
    std::fs::write(&file, wrong.to_string()).expect("written");
    assert!(refused(&["report", name]).contains("cannot show"));
    assert!(refused(&["report", "--recheck", name]).contains("no result of a comparison that this version reads"));
    wrong["data"]["arms"][1]["runs"].as_array_mut().expect("runs").pop();
    wrong["schema"] = "hugewise/compare/4".into();
    std::fs::write(&file, wrong.to_string()).expect("written");
    assert!(refused(&["report", "--recheck", name]).contains("lacks a run in block"));
}
