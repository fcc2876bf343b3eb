//! Pages that a measurement borrows from a pool go back: on Ctrl-C at once, after SIGKILL by its guardian, or by the next command.

mod common;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{Begun, begun_until, guardian_of, hugewise, journals, skipped, told};
use rustix::process::{Signal, kill_process};

const OVERCOMMIT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";

/// Programs with state directories of their own do not know of each other: the tests here take turns at the pool.
static TURN: Mutex<()> = Mutex::new(());

/// A measurement that has just borrowed 128M of 2M pages; `None` where it cannot, or need not since the pool is full.
fn borrowing(state: &Path) -> Option<Begun> {
    let args = [
        "measure",
        "latency",
        "--pages",
        "hugetlb-2M",
        "--sizes",
        "32M,64M,128M",
        "--budget",
        "120s",
    ];
    // What comes of the loan is said after what is measured: how the pages were had, or why there are none.
    let is_told = |line: &str| {
        line.contains("for this measurement: ")
            || line.contains("pages of 2M could not be borrowed")
            || line.contains("are needed")
    };
    let mut running = begun_until(hugewise(&args).env("HUGEWISE_STATE_DIR", state), is_told);
    if !running.said.iter().any(|line| line.contains("raised")) {
        running.child.kill().expect("killed");
        running.child.wait().expect("ended");
        return None;
    }
    Some(running)
}

fn overcommit() -> String {
    std::fs::read_to_string(OVERCOMMIT).unwrap_or_default()
}

/// Only root may lend, and only where there is a pool.
fn may_borrow() -> bool {
    std::fs::OpenOptions::new().write(true).open(OVERCOMMIT).is_ok()
}

#[test]
fn after_a_kill_its_guardian_gives_the_pages_back() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = overcommit();
    let state = tempfile::tempdir().expect("a directory");
    let Some(Begun { mut child, .. }) = may_borrow().then(|| borrowing(state.path())).flatten() else {
        return skipped("no pages to borrow: not root, no pool of 2M pages, or it is full already");
    };
    assert_eq!(journals(state.path()), 1, "while pages are borrowed");
    child.kill().expect("killed");
    child.wait().expect("ended");
    let until = Instant::now() + Duration::from_secs(30);
    while journals(state.path()) != 0 || overcommit() != before {
        assert!(Instant::now() < until, "{} {}", journals(state.path()), overcommit());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn after_a_kill_of_both_the_next_command_gives_the_pages_back_and_says_so() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = overcommit();
    let state = tempfile::tempdir().expect("a directory");
    let Some(Begun { mut child, .. }) = may_borrow().then(|| borrowing(state.path())).flatten() else {
        return skipped("no pages to borrow: not root, no pool of 2M pages, or it is full already");
    };
    let guardian = guardian_of(child.id()).expect("it has one while pages are borrowed");
    kill_process(guardian, Signal::KILL).expect("killed");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(journals(state.path()), 1);
    let next = told(
        hugewise(&["schema"])
            .env("HUGEWISE_STATE_DIR", state.path())
            .output()
            .expect("runs"),
    );
    let who = format!("hugewise (process {}) ended without giving back", child.id());
    assert!(next.err.contains(&who), "{}", next.err);
    assert_eq!((next.code, journals(state.path())), (Some(0), 0));
    assert_eq!(overcommit(), before);
}

#[test]
fn an_interrupted_measurement_gives_back_before_it_ends() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = overcommit();
    let state = tempfile::tempdir().expect("a directory");
    let Some(running) = may_borrow().then(|| borrowing(state.path())).flatten() else {
        return skipped("no pages to borrow: not root, no pool of 2M pages, or it is full already");
    };
    let (code, rest) = running.ended_by("-INT");
    assert_eq!(code, Some(130), "{rest}");
    assert_eq!(journals(state.path()), 0, "{rest}");
    assert_eq!(overcommit(), before, "{rest}");
}
