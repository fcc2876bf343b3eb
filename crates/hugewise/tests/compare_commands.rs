//! Commands that are compared with each other, what a time can show, and results that are judged anew.

mod common;

use std::time::{Duration, Instant};

use common::{refused, run, skipped, valid};

/// One run of each command, as JSON.
const ONCE: [&str; 7] = ["compare", "--json", "--quiet", "--runs", "1", "-w", "0"];

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
    let ended = run(&[&ONCE[..], &["-N", "-L", "time", "0.01,0.02,0.03", "sleep {time}"]].concat());
    let arms = valid(&ended.out)["data"]["arms"].as_array().map(Vec::len);
    assert_eq!((ended.code, arms), (Some(0), Some(3)), "{}", ended.err);
    assert!(refused(&["compare", "sleep 1"]).contains("hugewise compare -- sleep 1"));
    assert!(refused(&["compare", "-N", "true 'x", "true"]).contains("quote is not closed"));
}

#[test]
fn options_of_shell_commands_are_refused_where_there_are_none() {
    for (words, option) in [
        (&["--prepare", "true"][..], "--prepare"),
        (&["--conclude", "true"], "--conclude"),
        (&["--cleanup", "true"], "--cleanup"),
        (&["-n", "x"], "--command-name"),
        (&["-N"], "--no-shell"),
        (&["-S", "/bin/sh"], "--shell"),
        (&["--export-json", "/no/such/file"], "--export-json"),
        (&["-L", "x", "1,2"], "--parameter-list"),
        (&["-P", "x", "1", "2"], "--parameter-scan"),
    ] {
        for program in [&["--", "/bin/true"][..], &["--workload", "memtest"], &["--live", "1"]] {
            let why = refused(&[&["compare"], words, program].concat());
            assert!(
                why.contains(&format!("{option} is for shell commands")),
                "{words:?}: {why}"
            );
            assert!(why.contains("write each command in quotes"), "{why}");
        }
    }
}

#[test]
fn options_that_no_arm_or_design_takes_are_refused_with_what_to_write() {
    for (words, parts) in [
        (&["--pool", "64M", "--", "/bin/true"][..], ["--pool", "hugetlb-2M"]),
        (
            &["--arms", "base,system", "--technique", "preload", "--", "/bin/true"],
            ["--technique", "such as thp"],
        ),
        (&["--loads", "3", "true", "false"], ["--loads", "cannot be used with"]),
        (&["--stop", "true", "true", "false"], ["--stop", "cannot be used with"]),
        (
            &["--ready", "true", "--workload", "memtest"],
            ["--ready", "cannot be used with"],
        ),
        (
            &[
                "--design",
                "flip",
                "--loads",
                "3",
                "--ready",
                "true",
                "--load",
                "true",
                "--",
                "/bin/true",
            ],
            ["--loads", "write --design runs"],
        ),
        (
            &["--what-can-be-seen", "1s", "--pool", "64M", "--", "/bin/true"],
            ["--pool", "cannot be used with"],
        ),
    ] {
        let why = refused(&[&["compare"], words].concat());
        assert!(parts.iter().all(|part| why.contains(part)), "{words:?}: {why}");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("arms.toml").display().to_string();
    std::fs::write(&file, "[mine]\nlike = \"base\"\n").expect("written");
    let why = refused(&["compare", "--arms-file", &file, "--", "/bin/true"]);
    assert!(
        why.contains("--arms-file") && why.contains("name some, of mine"),
        "{why}"
    );
}

#[test]
fn what_cannot_work_is_refused_before_the_first_run_with_the_option_that_it_is_about() {
    let folder = tempfile::tempdir().expect("a directory");
    let made = folder.path().join("made").display().to_string();
    let first = format!("touch {made}");
    let is_free = || !std::path::Path::new(&made).exists();
    let why = refused(&["compare", "--export-json", "/no/such/times.json", &first, "true"]);
    assert!(why.contains("--export-json /no/such/times.json") && is_free(), "{why}");
    let why = refused(&["compare", "-N", &first, "no-such-program"]);
    assert!(
        why.contains("no-such-program: there is no such program") && is_free(),
        "{why}"
    );
    let why = refused(&["compare", "-L", "size", "1,2", &first, "true"]);
    assert!(why.contains("no command has {size}") && is_free(), "{why}");
    let why = refused(&["compare", "--quiet", "--prepare", "no-such-program", &first, "true"]);
    assert!(
        why.contains("the command before its run: `no-such-program` ended with exit status: 127"),
        "{why}"
    );
    assert!(
        !why.contains("--ignore-failure") && !why.contains("each word") && is_free(),
        "{why}"
    );
    // One that a command before its run makes is not missing.
    let program = folder.path().join("program").display().to_string();
    let copy = format!("cp /bin/true {program}");
    let ended = run(&[&ONCE[..], &["-N", "--prepare", &copy, &program, "true"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn runs_of_another_build_are_not_gone_on_with() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a directory");
    let [bench, log] = ["bench", "runs.jsonl"].map(|name| folder.path().join(name));
    let build = |text: &str| {
        std::fs::write(&bench, format!("#!/bin/sh\n{text}\n")).expect("written");
        std::fs::set_permissions(&bench, std::fs::Permissions::from_mode(0o700)).expect("executable");
    };
    let [line, log] = [&bench, &log].map(|path| path.display().to_string());
    let words = [&ONCE[..], &["-n", "bench", &line, "true"]].concat();
    build("true");
    assert_eq!(run(&[&words[..], &["--log", &log]].concat()).code, Some(0));
    assert_eq!(
        run(&[&words[..], &["--resume", &log]].concat()).code,
        Some(0),
        "the same build"
    );
    build("true; true");
    let why = refused(&[&words[..], &["--resume", &log]].concat());
    assert!(why.contains("the file of bench"), "{why}");
    // Nor those of an arm with a command of its own.
    std::fs::remove_file(&log).expect("removed");
    let arms = folder.path().join("arms.toml").display().to_string();
    std::fs::write(&arms, format!("[own]\ncommand = [\"{line}\"]\n")).expect("written");
    let own = |option| {
        let asked = [
            "--arms",
            "system,own",
            "--arms-file",
            &arms,
            option,
            &log,
            "--",
            "/bin/true",
        ];
        run(&[&ONCE[..], &asked].concat())
    };
    assert_eq!((own("--log").code, own("--resume").code), (Some(0), Some(0)));
    build("true");
    let changed = own("--resume");
    let is_refused = changed.code == Some(2) && changed.err.contains("the file of own");
    assert!(is_refused, "{}", changed.err);
}

#[test]
fn a_result_is_given_where_its_export_cannot_be_written_and_exported_with_its_parameters() {
    let asked = [&ONCE[..], &["-L", "time", "0.01,0.02", "sleep {time}"]].concat();
    let ended = run(&[&asked[..], &["--export-json", "/dev/full"]].concat());
    assert!(ended.err.contains("--export-json /dev/full"), "{}", ended.err);
    assert_eq!(
        (ended.code, valid(&ended.out)["data"]["arms"].as_array().map(Vec::len)),
        (Some(2), Some(2))
    );
    let folder = tempfile::tempdir().expect("a directory");
    let exported = folder.path().join("exported.json").display().to_string();
    let ended = run(&[&asked[..], &["--export-json", &exported]].concat());
    let text = std::fs::read_to_string(&exported).expect("made");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (ended.code, &value["results"][1]["parameters"]["time"]),
        (Some(0), &"0.02".into())
    );
    let codes = |words: &[&str]| {
        let ended = run(words);
        let warnings = valid(&ended.out)["warnings"].as_array().cloned().expect("warnings");
        warnings
            .iter()
            .filter_map(|warning| warning["code"].as_str().map(str::to_owned))
            .collect::<Vec<String>>()
    };
    let quick = [&ONCE[..], &["true", "sleep 1"]].concat();
    if !codes(&quick).contains(&"shell-counts".to_owned()) {
        skipped("the machine is too busy: even `true` takes long");
    }
    assert!(!codes(&[&quick[..], &["-N"]].concat()).contains(&"shell-counts".to_owned()));
    let failing = [&ONCE[..], &["-i", "exit 3", "sleep 0.01"]].concat();
    assert!(codes(&failing).contains(&"runs-failed".to_owned()));
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
    let folder = tempfile::tempdir().expect("a directory");
    let made = folder.path().join("made").display().to_string();
    let prepare = format!("echo x >> {made}");
    let why = refused(&[
        "compare",
        "--quiet",
        "--what-can-be-seen",
        "500ms",
        "--prepare",
        &prepare,
        "sleep 0.4",
    ]);
    assert!(
        why.contains("(write --what-can-be-seen ") && !why.contains("--budget"),
        "{why}"
    );
    assert!(std::path::Path::new(&made).exists(), "prepared as a comparison is");
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
    // Thirty blocks end such a comparison in seconds, and neither a quarter of the time nor all of it shows anything else.
    let visible = forecast["visible"].as_array().expect("times");
    assert_eq!(
        (visible.len(), visible[0]["blocks"].as_u64()),
        (1, Some(30)),
        "{forecast}"
    );
    assert!(visible[0]["seconds"].as_f64() < Some(60.0), "{forecast}");
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
