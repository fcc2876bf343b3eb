//! Plans on the real machine: what is applied is obtained, and what is undone is byte for byte as before.

#[path = "../common/mod.rs"]
mod common;
mod initramfs;
mod kill;
mod kills;
mod machine;
mod placement;
mod restart;
mod several;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

use common::{Run, skipped, valid};
use machine::{Bench, MOUNTS, POOL, SHM_GROUP, THP, chosen};
use serde_json::{Value, json};

/// What came of each change, by id.
fn came(applied: &Value) -> Vec<(String, String)> {
    let steps = applied["steps"].as_array().expect("a list");
    let word = |step: &Value, key: &str| step[key].as_str().expect("a word").to_owned();
    steps
        .iter()
        .map(|step| (word(step, "id"), word(step, "outcome")))
        .collect()
}

fn code(run: &Run) -> i32 {
    run.code.unwrap_or_else(|| panic!("killed: {}", run.err))
}

#[test]
fn every_layer_is_applied_verified_and_undone_byte_for_byte() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let (plan, thp) = (bench.plan(bench.every_layer()), bench.other_thp());
    let Some(run) = bench.apply(&plan, &[]) else { return };
    assert_eq!(code(&run), 0, "{}", run.err);
    let applied = valid(&run.out)["data"].take();
    assert_eq!(applied["end"], "applied");
    for (id, came) in came(&applied) {
        assert_eq!(came, if id == "jvm" { "to-do" } else { "done" }, "{id}");
    }
    assert_eq!(chosen(&format!("{THP}/enabled")), thp);
    let limits = fs::metadata(bench.limits()).expect("replaced");
    assert_eq!((limits.mode() & 0o7777, limits.uid(), limits.gid()), (0o640, 1, 2));
    let mounts = fs::read_to_string(MOUNTS).expect("mounts");
    let mount = mounts
        .lines()
        .find(|line| line.contains(&bench.mount_point()))
        .expect("mounted");
    assert!(mount.contains("pagesize=2M") && mount.contains("mode=770"), "{mount}");

    for words in [&["verify"][..], &["verify", &plan]] {
        let run = bench.run(&[words, &["--json"]].concat());
        assert_eq!(code(&run), 0, "{}", run.out);
        let checks = valid(&run.out)["data"]["plans"][0]["checks"].take();
        assert_eq!(checks.as_array().map(Vec::len), Some(9), "{checks}");
    }
    let status = valid(&bench.run(&["status", "--json"]).out)["data"].take();
    assert_eq!(status["runs"][0]["complete"], true);

    for (place, came) in bench.undo() {
        assert_eq!(came, "restored", "{place}");
    }
    assert_eq!(bench.changed_since(&before), [""; 0]);
    assert!(bench.journals().is_empty());
}

/// khugepaged ends and starts again on the way, with which the kernel moves `vm.min_free_kbytes`.
#[test]
fn policies_are_undone_one_by_one_and_the_kernel_s_reserve_with_them() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let policy = format!("{THP}/enabled");
    let now = chosen(&policy);
    for [from, to] in [[now.as_str(), "never"], ["never", "madvise"]] {
        if from == to {
            continue;
        }
        let change = bench.setting("thp", &policy, json!(from), json!(to));
        let plan = bench.plan_for(&format!("thp={to}"), &format!("{to}.json"), vec![change]);
        let Some(run) = bench.apply(&plan, &[]) else { return };
        assert_eq!(code(&run), 0, "{}", run.err);
    }
    for (place, came) in bench.undo() {
        assert_eq!(came, "restored", "{place}");
    }
    assert_eq!(bench.changed_since(&before), [""; 0]);
}

#[test]
fn what_others_changed_since_is_left_and_told_by_the_exit_code() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let plan = bench.plan(bench.quiet_layers());
    let Some(run) = bench.apply(&plan, &[]) else { return };
    assert_eq!(code(&run), 0, "{}", run.err);
    fs::write(bench.sysctl(), "theirs\n").expect("written");
    assert_eq!(code(&bench.run(&["verify"])), 1);
    let run = bench.run(&["undo"]);
    assert_eq!(code(&run), 1, "{}", run.out);
    assert!(
        run.out.contains("changed by others, left") && run.out.contains(&bench.sysctl()),
        "{}",
        run.out
    );
    assert_eq!(fs::read_to_string(bench.sysctl()).expect("there"), "theirs\n");
    let run = bench.run(&["undo", "--forget"]);
    assert_eq!(code(&run), 0, "{}", run.out);
    fs::remove_file(bench.sysctl()).expect("removed");
    assert_eq!(bench.changed_since(&before), [""; 0]);
}

#[test]
fn a_shortfall_is_reported_with_what_was_obtained() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let more = bench.more_pages();
    let plan = bench.plan(vec![
        more.clone(),
        bench.setting("group", SHM_GROUP, json!(chosen(SHM_GROUP)), json!("4711")),
    ]);
    // More is to be left to others than the machine has, so nothing can be taken from them.
    let Some(run) = bench.apply(&plan, &["--leave", "1024T"]) else {
        return;
    };
    assert_eq!(code(&run), 1, "{}", run.err);
    let data = valid(&run.out)["data"].take();
    assert_eq!(
        (&data["end"], &data["steps"][0]["outcome"]),
        (&json!("short"), &json!("short"))
    );
    let pages = more["before"].to_string();
    assert_eq!(
        (&data["steps"][0]["obtained"], chosen(SHM_GROUP)),
        (&json!(pages), "4711".to_owned())
    );
    assert_eq!(code(&bench.run(&["verify"])), 1);
    bench.undo();
    assert_eq!(bench.changed_since(&before), [""; 0]);

    let Some(run) = bench.apply(&plan, &["--exact", "--leave", "1024T"]) else {
        return;
    };
    assert_eq!(code(&run), 1, "{}", run.err);
    assert_eq!(valid(&run.out)["data"]["end"], "rolled-back");
    assert_eq!(bench.changed_since(&before), [""; 0]);
    assert!(bench.journals().is_empty());
}

#[test]
fn drift_links_and_silence_are_refused_and_nothing_is_written() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let plan = bench.plan(bench.quiet_layers());
    let refused = |words: &[&str], part: &str| {
        let run = bench.run(words);
        assert_eq!(code(&run), 2, "{words:?}: {}", run.out);
        assert!(run.err.contains(part), "{words:?}: {}", run.err);
    };
    refused(&["apply", &plan], "write --yes");
    refused(&["apply", "/nonexistent.json", "--yes"], "/nonexistent.json");
    refused(
        &[
            "--root",
            "../../fixtures/machines/desktop.tree",
            "apply",
            &plan,
            "--yes",
        ],
        "--root",
    );

    let theirs = bench.directory().join("precious");
    fs::write(&theirs, "precious").expect("written");
    symlink(&theirs, bench.sysctl()).expect("a link");
    refused(&["apply", &plan, "--yes"], "found `a symbolic link`");
    fs::remove_file(bench.sysctl()).expect("removed");
    assert_eq!(fs::read_to_string(&theirs).expect("there"), "precious");

    let drifted = bench.setting("group", SHM_GROUP, json!("999999"), json!("4711"));
    refused(&["apply", &bench.plan(vec![drifted]), "--yes"], "planned over `999999`");
    for path in ["/etc/passwd", "/etc/sysctl.d/../passwd", "/etc/sysctl.d/a\nb.conf"] {
        let hostile = bench.plan(vec![bench.file("x", path, Value::Null, "x")]);
        refused(&["apply", &hostile, "--yes"], "change `x` of the plan");
    }
    assert_eq!(bench.changed_since(&before), [""; 0]);
    assert!(bench.journals().is_empty());
}

#[test]
fn of_many_at_once_one_applies_and_the_others_are_refused() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let plan = bench.plan(bench.quiet_layers());
    let start = |_| {
        let mut command = bench.command(&["apply", &plan, "--yes"]);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts")
    };
    let runs: Vec<_> = (0..4)
        .map(start)
        .collect::<Vec<_>>()
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().expect("ends");
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        })
        .collect();
    if runs
        .iter()
        .all(|(_, told)| told.contains(&format!("{POOL}: planned over")))
    {
        return skipped("other programs changed the pool during the test");
    }
    let applied = runs.iter().filter(|(code, _)| *code == Some(0)).count();
    assert_eq!(applied, 1, "{runs:?}");
    for (code, told) in runs.iter().filter(|(code, _)| *code != Some(0)) {
        assert_eq!(*code, Some(2), "{told}");
        assert!(
            told.contains("another hugewise run holds") || told.contains("planned over"),
            "{told}"
        );
    }
    bench.undo();
    assert_eq!(bench.changed_since(&before), [""; 0]);
}
