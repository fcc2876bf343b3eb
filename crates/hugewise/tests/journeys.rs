//! The journeys of the book are what happens: each command is run, does what its page says, and is undone.

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{missing, skipped, told};
use rustix::process::{Pid, Signal, kill_process};

/// They change the same pools.
static TURN: Mutex<()> = Mutex::new(());

fn journey(name: &str) -> Option<Command> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/journeys/run");
    if Command::new("python3").arg("--version").output().is_err() {
        missing("python3");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(script);
    command.args(["--check", "--program", env!("CARGO_BIN_EXE_hugewise"), name]);
    Some(command)
}

fn pools() -> Vec<String> {
    let pools = std::fs::read_dir("/sys/kernel/mm/hugepages")
        .into_iter()
        .flatten()
        .flatten();
    let number = |pool: &Path, file: &str| -> u64 {
        let text = std::fs::read_to_string(pool.join(file)).expect("a pool");
        text.trim().parse().expect("a number")
    };
    let own = |pool: &Path| number(pool, "nr_hugepages").saturating_sub(number(pool, "surplus_hugepages"));
    let mut pools: Vec<String> = pools
        .map(|pool| format!("{:?}: {}", pool.file_name(), own(&pool.path())))
        .collect();
    pools.sort();
    pools
}

fn holds(name: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut command) = journey(name) else { return };
    let before = pools();
    let run = told(command.output().expect("python3 starts"));
    match run.code {
        // `skipped: vm: no pool pages can be had`.
        Some(3) => skipped(run.out.trim().splitn(3, ": ").last().unwrap_or_default()),
        code => assert_eq!(code, Some(0), "{} {}", run.out, run.err),
    }
    assert_eq!(pools(), before);
}

#[test]
fn the_journey_of_a_dba_is_what_happens() {
    holds("postgresql");
}

#[test]
fn the_journey_of_a_java_developer_is_what_happens() {
    holds("jvm");
}

#[test]
fn the_journey_of_a_vm_admin_is_what_happens() {
    holds("vm");
}

/// After `apply`, when a pool is changed and a guest runs.
#[test]
fn a_journey_that_is_interrupted_undoes_what_it_changed() {
    use std::io::{BufRead, BufReader};
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut command) = journey("vm") else { return };
    let before = pools();
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("python3 starts");
    let lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let mut lines = lines.map_while(Result::ok);
    if lines.any(|line| line.contains("hugewise verify")) {
        kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.wait().expect("ended").code(), Some(130), "{rest:?}");
    } else {
        skipped("the journey did not come to its changes");
        child.wait().expect("ended");
    }
    assert_eq!(pools(), before);
}
