//! `plan` and `size` from the outside: published recipes and figures, goals in files, scripts, and hostile words.

use std::io::Write as _;

use crate::common::{done, hugewise, machine, machines, refused, run, text, told, valid};
use serde_json::Value;

/// A plan for a captured machine.
fn planned(name: &str, goal: &str) -> Value {
    let result = valid(&done(&["--root", text(&machine(name)), "plan", "--for", goal, "--json"]).out);
    assert_eq!(result["schema"], "hugewise/plan/3");
    let again = model::plan::Plan::from_json(&result.to_string()).expect("a plan that apply takes");
    assert_eq!(again.data.changes.len(), changes(&result).len());
    result
}

fn changes(result: &Value) -> &Vec<Value> {
    result["data"]["changes"].as_array().expect("changes")
}

fn after<'v>(result: &'v Value, path: &str) -> &'v Value {
    let change = changes(result).iter().find(|change| change["target"]["path"] == path);
    &change.unwrap_or_else(|| panic!("no {path} in {result:#}"))["after"]
}

#[test]
fn the_jboss_recipe_comes_out_as_published() {
    let plan = planned("rhel5-jboss", "jvm:heap=6g,user=jboss");
    assert_eq!(after(&plan, "/proc/sys/kernel/shmmax"), "8589934592");
    assert_eq!(after(&plan, "/proc/sys/vm/nr_hugepages"), 3072);
    assert_eq!(after(&plan, "/proc/sys/vm/hugetlb_shm_group"), "501");
    let limits = after(&plan, "/etc/security/limits.conf");
    let lines = ["jboss soft memlock 6291456", "jboss hard memlock 6291456"];
    assert_eq!(limits["edits"][0]["adds"], serde_json::json!(lines), "{limits}");
}

#[test]
fn its_modern_counterpart_sets_less_and_says_why() {
    let plan = planned("jvm-madvise", "jvm:heap=6g,user=jboss");
    assert_eq!(
        after(&plan, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
        3252
    );
    let notes = plan["data"]["notes"].to_string();
    for part in [
        "MAP_HUGETLB",
        "vm.hugetlb_shm_group is not set",
        "no memlock limit",
        "code cache",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn every_machine_gets_a_plan_or_a_reason_in_every_form() {
    for (name, machine) in machines() {
        let ran = run(&[
            "--root",
            text(&machine),
            "plan",
            "--for",
            "pool:2M=16",
            "--for",
            "redis",
        ]);
        match ran.code {
            Some(0) => assert!(
                ran.out.contains("changes for pool:2M=16 and redis"),
                "{name}: {}",
                ran.out
            ),
            _ => assert!(ran.err.contains("goal `pool:2M=16`"), "{name}: {}", ran.err),
        }
    }
    let goal = "jvm:heap=6g,user=jboss";
    let root = machine("rhel5-jboss");
    for (format, part) in [
        ("text", "jboss soft memlock 6291456"),
        ("markdown", "| layer"),
        ("csv", "id,layer,target"),
        ("html", "</html>"),
        ("shell", "pool '/proc/sys/vm/nr_hugepages' '0' '3072'"),
        ("ansible", "ansible.builtin.lineinfile"),
    ] {
        let out = done(&["--root", text(&root), "plan", "--for", goal, "--format", format]).out;
        assert!(out.contains(part), "{format}: {out}");
    }
}

#[test]
fn a_file_of_goals_is_read_and_its_errors_are_placed() {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    writeln!(
        file,
        "goals = [\"pool:2M=16\"]\n[[goal]]\nfor = \"thp\"\nenabled = \"never\""
    )
    .expect("written");
    let root = machine("kernel-5.10");
    let out = done(&["--root", text(&root), "plan", "--for", text(file.path()), "--json"]).out;
    let goals = valid(&out)["data"]["goals"].clone();
    assert_eq!(goals, serde_json::json!(["thp:never", "pool:2M=16"]));
    writeln!(file, "user = \"a;b\"").expect("written");
    let why = refused(&["plan", "--for", text(file.path())]);
    assert!(why.contains(".toml: goal 1: user"), "{why}");
    assert!(refused(&["plan", "--for", "/nonexistent.toml"]).contains("/nonexistent.toml"));
}

#[test]
fn hostile_goals_are_refused_in_one_line() {
    for goal in [
        "jvm:heap=1g,user=a\nb",
        "pool:2M=16,mount=/mnt/../etc",
        "jvm:heap=1g,service=$(id)",
        "postgres:/etc/../x",
    ] {
        let why = refused(&["plan", "--for", goal]);
        assert!(why.contains("goal `") && why.lines().count() == 1, "{why}");
    }
}

#[test]
fn sizes_are_those_of_the_published_studies() {
    for (args, part) in [
        (&["pages", "6G", "--pages", "2M"][..], "3072"),
        (&["memlock", "6G"], "6291456"),
        (&["shmmax", "8G"], "8589934592"),
        (
            &["esx-cpu", "--cores", "48", "--ghz", "2.99", "--reserved-mhz", "10386"],
            "131560",
        ),
        (&["esx-cpu", "--vcpus", "20", "--ghz", "2.0"], "40   GHz"),
        (&["esx-memory", "--total", "2048", "--reserved", "39"], "2008"),
        (&["esx-memory", "--total", "2048", "--reserved", "39"], "1998"),
        (
            &[
                "esx-backing",
                "--memory",
                "1960",
                "--pages-1g",
                "1941",
                "--pages-2m",
                "8605",
            ],
            "suboptimal",
        ),
        (&["esx-minfree", "28G"], "901.12"),
        (
            &["idle-tax", "--shares", "1000", "--pages", "250", "--active", "0.5"],
            "1.6",
        ),
        (&["ksm"], "19.53125"),
        (
            &["gain", "--old", "8527,8411,8298", "--new", "10042,10072,10120"],
            "19.805",
        ),
        (&["jvm", "--heap", "6g"], "3252"),
        (&["oracle", "--sga", "24G"], "12292"),
        (&["innodb", "--buffer-pool", "8G"], "4224"),
        (&["vm", "--memory", "64G"], "64"),
        (&["dpdk", "--socket-mem", "1G,1G"], "2"),
        // A public case, in DPDK's own form: 2048 pages of 2M on each of two nodes.
        (&["dpdk", "--socket-mem", "4096,4096", "--pages", "2M"], "2048"),
        (&["redis", "--maxmemory", "8G"], "no pages from a pool"),
        (&["postgres", "--shared-buffers", "8G"], "shared_buffers"),
    ] {
        let args: Vec<&str> = ["size"].iter().chain(args).copied().collect();
        let out = done(&args).out;
        assert!(out.contains(part), "{args:?}: {out}");
    }
    assert!(refused(&["size", "pages", "6G", "--pages", "3M"]).contains("`3M` is not a page size"));
}

#[test]
fn postgresql_tells_its_own_pages_where_it_is_installed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("postgresql.conf");
    std::fs::write(&file, "shared_buffers = 1GB\n").expect("written");
    let ran = done(&["size", "postgres", text(&file), "--json"]);
    let result = valid(&ran.out);
    // Without a data directory no server answers: an estimate, and the warning that it is one.
    assert_eq!(result["warnings"][0]["code"], "estimated", "{}", ran.out);
    let pages = result["data"]["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .find(|step| step["name"] == "pages");
    assert!(
        pages.expect("pages")["value"]
            .as_u64()
            .is_some_and(|pages| (537..600).contains(&pages)),
        "{}",
        ran.out
    );
}

#[test]
fn size_postgres_reads_what_its_file_includes() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("written");
    std::fs::create_dir(directory.path().join("conf.d")).expect("made");
    write("conf.d/b.conf", "shared_buffers = 1GB\n");
    write("postgresql.conf", "shared_buffers = 8GB\ninclude_dir 'conf.d'\n");
    for typed in ["postgresql.conf", "./postgresql.conf"] {
        let mut command = hugewise(&["size", "postgres", typed, "--estimate"]);
        let out = told(command.current_dir(&directory).output().expect("starts")).out;
        assert!(
            out.contains("shared_buffers of 1G") && out.contains("  537   pages"),
            "{out}"
        );
    }
}

#[test]
fn a_plan_for_a_running_openj9_has_its_own_options() {
    let tree = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/cases/14-openj9-memlock/m.tree"
    );
    let plan = done(&["--root", tree, "plan", "--for", "jvm:pid=4000"]).out;
    assert!(
        plan.contains("-Xlp:objectheap:pagesize=2m") && !plan.contains("UseLargePages"),
        "{plan}"
    );
    // Its need is its own too: no collector and no table of HotSpot.
    assert!(
        plan.contains("for an OpenJ9 of 25G: 12928") && !plan.contains("g1") && !plan.contains("card_table"),
        "{plan}"
    );
}
