//! Programs that take huge pages by themselves, and servers: the reference is what it is called, or that is said at once.

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{done, run, skipped, valid, words};
use serde_json::Value;

/// Takes so many MiB: `pool` from a pool, or base pages where there are none; `need` from a pool or not at all; `undo` by switching
/// THP on again for itself. Walks them for so many seconds.
const TAKES: &str = "compare_own/takes.c";

/// A server that answers each line of a named pipe by work, and lives on when its command has ended.
const SERVER: &str = r#"
import os, sys
place = sys.argv[1]
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
memory = bytearray(80 << 20)
for at in range(0, len(memory), 4096): memory[at] = 1
open(place + "/pid", "w").write(str(os.getpid()))
os.mkfifo(place + "/ask"); os.mkfifo(place + "/answer")
open(place + "/ready", "w")
while True:
    asked = open(place + "/ask").read()
    if "stop" in asked: break
    total = sum(i * i for i in range(2_000_000))
    open(place + "/answer", "w").write("done\n")
for name in ("pid", "ask", "answer", "ready"): os.unlink(place + "/" + name)
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn takes(&self) -> Option<String> {
        let program = self.path("takes");
        common::compiled(TAKES, &program)?;
        Some(program.to_str().expect("a name").to_owned())
    }
}

fn share(arms: &Value, arm: usize) -> f64 {
    arms[arm]["coverage"]["median"].as_f64().unwrap_or(-1.0)
}

fn has_free_pages() -> bool {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
}

/// Programs with state directories of their own do not know of each other: the tests here take turns at the pool.
static POOL: Mutex<()> = Mutex::new(());

/// A result of arms that took turns, or `None` where no page can be lent.
fn compared(options: &[&str], command: &[&str]) -> Option<Value> {
    let _turn = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let state = tempfile::tempdir().expect("a directory");
    let words = [
        &["compare", "--runs", "1", "--warm-up", "0", "--json"],
        options,
        &["--"],
        command,
    ]
    .concat();
    let mut program = common::hugewise(&words);
    let run = common::told(
        program
            .env("HUGEWISE_STATE_DIR", state.path())
            .output()
            .expect("starts"),
    );
    if run.err.contains("could not be borrowed: ") || run.err.contains("were available") {
        skipped(run.err.trim());
        return None;
    }
    assert_eq!(run.code, Some(0), "{}", run.err);
    Some(valid(&run.out)["data"]["arms"].clone())
}

#[test]
fn a_program_that_takes_pool_pages_by_itself_has_none_on_loan_in_base() {
    let folder = Folder::new();
    let Some(program) = folder.takes() else { return };
    if has_free_pages() {
        return skipped("the pool has free pages, which any program may take");
    }
    let Some(arms) = compared(&["--arms", "base,hugetlb-2M"], &[&program, "pool", "64", "0.8"]) else {
        return;
    };
    assert!(share(&arms, 0) > 0.9 && share(&arms, 1) > 0.9, "{arms}");
}

#[test]
fn a_reference_that_does_not_start_without_pages_gets_them_before_its_first_run() {
    let folder = Folder::new();
    let Some(program) = folder.takes() else { return };
    let arms_file = folder.path("arms.toml");
    let plain = format!("[plain]\nlike = \"base\"\ncommand = [\"{program}\", \"none\", \"64\", \"0.8\"]\n");
    std::fs::write(&arms_file, plain).expect("written");
    let options = [
        "--arms",
        "hugetlb-2M,plain",
        "--arms-file",
        arms_file.to_str().expect("a name"),
    ];
    let Some(arms) = compared(&options, &[&program, "need", "64", "0.8"]) else {
        return;
    };
    assert!(share(&arms, 0) > 0.9 && share(&arms, 1) > 0.9, "{arms}");
}

#[test]
fn a_reference_on_huge_pages_of_its_own_is_said_long_before_its_run_ends() {
    let folder = Folder::new();
    let Some(program) = folder.takes() else { return };
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if mode.is_empty() || mode.contains("[never]") {
        return skipped("this machine gives no THP");
    }
    let began = Instant::now();
    let run = run(&["compare", "--arms", "base,system", "--", &program, "undo", "64", "120"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("the reference base is not in effect") && run.err.contains("compare with the arm system"),
        "{}",
        run.err
    );
    // Within 15 s where nothing else runs, of a program that takes 120.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn a_server_that_does_not_start_is_quoted() {
    let line = "echo FATAL: no huge pages for me >&2; exit 1";
    let server = ["--ready", "sleep 0.2; false", "--load", "true", "--", "sh", "-c", line];
    let run = run(&words("compare --arms base,system", &server));
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("ended before it was ready") && run.err.contains("FATAL: no huge pages"),
        "{}",
        run.err
    );
}

/// The result of one run of each arm.
fn one_run(more: &[&str]) -> Value {
    let run = done(&words("compare --arms base,system --runs 1 --warm-up 0 --json", more));
    valid(&run.out)
}

#[test]
fn a_server_that_its_command_leaves_behind_has_its_accounts_and_its_pages() {
    let folder = Folder::new();
    let script = folder.path("server.py");
    std::fs::write(&script, SERVER).expect("written");
    let place = folder.path("place");
    std::fs::create_dir(&place).expect("a folder");
    if !Path::new("/usr/bin/python3").exists() {
        return common::missing("python3");
    }
    let place = place.to_str().expect("a name");
    let ready = format!(
        "python3 {} {place} && while ! test -e {place}/ready; do sleep 0.05; done",
        script.display()
    );
    let load = format!("echo work >{place}/ask; cat {place}/answer");
    let stop = format!("echo stop >{place}/ask");
    let server = ["--ready", &ready, "--load", &load, "--stop", &stop];
    let result = one_run(&words("--metric cpu", &server));
    for arm in result["data"]["arms"].as_array().expect("arms") {
        let metrics = &arm["runs"][0]["metrics"];
        assert!(metrics["cpu"].as_f64().is_some_and(|cpu| cpu > 0.02), "{metrics}");
        assert!(
            metrics["memory"].as_f64().is_some_and(|bytes| bytes > 80e6),
            "{metrics}"
        );
        assert_eq!(arm["runs"][0]["loads"].as_array().map(Vec::len), Some(2));
    }
    assert!(!Path::new(place).join("pid").exists(), "it was stopped");
}

/// A Java client that waits for a Java server, as of the recipe `ejb`, took the huge pages that the server's heap needed.
#[test]
fn the_arm_does_nothing_to_what_waits_for_a_server() {
    if !std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("THP_enabled")) {
        return skipped("this kernel does not say whether THP is switched off for a process");
    }
    let folder = Folder::new();
    let seen = folder.path("seen");
    // A word that is known as a program whose options an arm sets.
    let ready = format!("grep THP_enabled /proc/self/status >> {}; true || java", seen.display());
    let server = ["--ready", &ready, "--load", "true", "--", "sleep", "3"];
    one_run(&server);
    let seen = std::fs::read_to_string(&seen).expect("it was asked");
    assert!(
        seen.lines().count() >= 2 && seen.lines().all(|line| line.ends_with('1')),
        "{seen}"
    );
}

#[test]
fn a_load_that_another_program_serves_has_no_accounts_instead_of_zeros() {
    let result = one_run(&words(
        "--ready true --stop true --load",
        &["sleep 0.6", "--", "sleep", "3"],
    ));
    let arm = &result["data"]["arms"][0];
    assert!(arm["runs"][0]["metrics"]["cpu"].is_null(), "{arm}");
    assert!(arm["coverage"].to_string().contains("another one serves it"), "{arm}");
}
