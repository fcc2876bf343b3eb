//! Several plans on the real machine, undone one by one; plans that hold lines instead of files; and what the exit code tells.

use std::fs;
use std::process::Stdio;

use model::plan::Sum;
use serde_json::{Value, json};

use crate::common::{skipped, valid};
use crate::machine::{Bench, POOL, SHM_GROUP, chosen, persistent};

/// Two plans: each has pages, a line in one file, and something of its own.
fn two(bench: &Bench) -> [String; 2] {
    let pages = persistent();
    let (first, both) = ("vm.swappiness = 60\n", "vm.swappiness = 60\nvm.max_map_count = 65530\n");
    let one = vec![
        bench.setting("pool", POOL, json!(pages), json!(pages + 2)),
        bench.file("sysctl", &bench.sysctl(), Value::Null, first),
        bench.file("limits", &bench.limits(), json!("# old\n"), "# old\n# one\n"),
    ];
    let other = vec![
        bench.setting("pool", POOL, json!(pages + 2), json!(pages + 5)),
        bench.setting("group", SHM_GROUP, json!(chosen(SHM_GROUP)), json!("4711")),
        bench.file("sysctl", &bench.sysctl(), json!(first), both),
    ];
    [
        bench.plan_for("pool:2M=2", "one.json", one),
        bench.plan_for("pool:2M=3", "other.json", other),
    ]
}

#[test]
fn two_plans_are_applied_verified_and_undone_in_both_orders() {
    let Some(bench) = Bench::set_up() else { return };
    for is_first in [true, false] {
        let before = bench.picture();
        let (plans, pages) = (two(&bench), persistent());
        for plan in &plans {
            let Some(run) = bench.apply(plan, &[]) else { return };
            assert_eq!(run.code, Some(0), "{}", run.err);
        }
        let verified = bench.run(&["verify", "--json"]);
        assert_eq!(verified.code, Some(0), "{}", verified.out);
        let [goes, stays] = if is_first { [0, 1] } else { [1, 0] };
        let undone = bench.run(&["undo", &plans[goes]]);
        if persistent() != pages + [2, 3][stays] {
            return skipped("other programs changed the pool during the test");
        }
        assert_eq!(undone.code, Some(0), "{} {}", undone.out, undone.err);
        let line = ["vm.swappiness = 60\n", "vm.max_map_count = 65530\n"][stays];
        assert_eq!(fs::read_to_string(bench.sysctl()).expect("there"), line);
        assert_eq!((bench.run(&["verify"]).code, bench.journals().len()), (Some(0), 1));
        assert_eq!(bench.run(&["undo", "redis"]).code, Some(2), "no such plan");
        bench.undo();
        assert_eq!(bench.changed_since(&before), [""; 0]);
    }
}

#[test]
fn a_plan_of_lines_is_for_the_file_that_it_was_made_for() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let lines = |text: &str, adds: &str| {
        let mut change = bench.file("limits", &bench.limits(), Value::Null, "");
        change["before"] = json!({"sha256": Sum::of(text).sha256});
        change["after"] = json!({"edits": [{"line": 2, "section": null, "removes": [], "adds": [adds]}]});
        bench.plan(vec![change])
    };
    for (text, adds, part) in [
        ("another\n", "# new", "planned over"),
        ("# old\n", "* - nproc unlimited", "a plan adds only lines"),
    ] {
        let run = bench.run(&["apply", &lines(text, adds), "--yes"]);
        assert_eq!(run.code, Some(2), "{}", run.out);
        assert!(run.err.contains(part), "{}", run.err);
    }
    let plan = lines("# old\n", "nobody - memlock 65536");
    let run = bench.apply(&plan, &[]).expect("no pool is in it");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(
        fs::read_to_string(bench.limits()).expect("there"),
        "# old\nnobody - memlock 65536\n"
    );
    assert_eq!(bench.run(&["verify", &plan]).code, Some(0));
    bench.undo();
    assert_eq!(bench.changed_since(&before), [""; 0]);
}

#[test]
fn the_exit_code_tells_what_was_done_and_not_what_could_be_printed() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let group = bench.setting("group", SHM_GROUP, json!(chosen(SHM_GROUP)), json!("4711"));
    let plan = bench.plan(vec![group]);
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("a full device")
    };
    let code = |words: &[&str]| {
        let mut command = bench.command(words);
        command
            .stdout(full())
            .stderr(Stdio::null())
            .status()
            .expect("starts")
            .code()
    };
    assert_eq!(code(&["apply", &plan, "--yes"]), Some(0));
    assert_eq!(chosen(SHM_GROUP), "4711");
    assert_eq!(code(&["undo"]), Some(0));
    assert_eq!(bench.changed_since(&before), [""; 0]);
}

#[test]
fn what_the_machine_would_not_survive_is_refused() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let mount = |at: &str| {
        let mut change = bench.setting("mount", at, Value::Null, json!("pagesize=2M,uid=61001,mode=0775"));
        change["target"] = json!({"kind": "mount", "at": at});
        change
    };
    for change in [
        mount("/run/udev/rules.d"),
        mount("/run/systemd/system"),
        bench.file("a", &bench.sysctl(), Value::Null, "vm.nr_hugepages = 17179869184\n"),
        bench.file(
            "b",
            &bench.sysctl(),
            Value::Null,
            "vm.min_free_kbytes = 4194304\nvm.nr_hugepages = 17179869184\n",
        ),
        bench.file("c", &bench.sysctl(), Value::Null, "kernel.shmmax = 0\n"),
    ] {
        let run = bench.run(&["apply", &bench.plan(vec![change]), "--yes"]);
        assert_eq!(run.code, Some(2), "{} {}", run.out, run.err);
        assert_eq!(bench.changed_since(&before), [""; 0]);
    }
    assert!(
        valid(&bench.run(&["status", "--json"]).out)["data"]["runs"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
}
