//! A program whose accesses are known, captured while it runs.

use std::ffi::OsString;
use std::time::Duration;

use super::{Captured, Limits, MOST, capture};
use crate::steps;
use crate::{Attention, Order, Process};

fn captured(words: &[&str], budget: Duration) -> (Captured, Process) {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let mut process = Process::start(&Order::plain(&words), Attention::Free, false).expect("starts");
    let limits = Limits {
        budget,
        window: steps::Bound {
            steps: 4000,
            time: Duration::from_secs(5),
        },
    };
    let captured = capture(&mut process, limits, &|| false).expect("captured");
    (captured, process)
}

/// A loop of the shell takes thousands of instructions a round.
const LOOP: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done $i";

#[test]
fn a_program_is_stepped_in_windows_and_ends_as_it_would() {
    let (captured, process) = captured(&["sh", "-c", LOOP], Duration::from_secs(120));
    assert!(captured.refused.is_none(), "{:?}", captured.refused);
    assert!(captured.has_ended && !captured.has_threads);
    assert!(
        (1..=MOST).contains(&captured.windows.len()),
        "{}",
        captured.windows.len()
    );
    for (_, window) in &captured.windows {
        assert!((1000..=4000).contains(&window.instructions), "{}", window.instructions);
        assert!(
            window.touched.iter().any(|touch| touch.is_store) && window.touched.iter().any(|touch| !touch.is_store)
        );
        assert!(
            window
                .touched
                .iter()
                .all(|touch| touch.address > 4096 && touch.address >> 47 == 0)
        );
    }
    assert!(captured.windows.is_sorted_by_key(|(at, _)| *at));
    let done = process.end().expect("its end");
    assert!(done.ended.status.success());
    assert_eq!(done.outputs.output(), "done 300000\n");
}

#[test]
fn what_runs_longer_than_the_budget_is_let_go_and_goes_on() {
    let (captured, process) = captured(&["sh", "-c", "while :; do :; done"], Duration::from_millis(500));
    assert!(!captured.has_ended && !captured.windows.is_empty());
    assert_eq!(
        process.status().expect_err("runs").kind(),
        std::io::ErrorKind::WouldBlock
    );
    drop(process);
}

#[test]
fn a_program_that_waits_has_no_windows() {
    let (captured, _process) = captured(&["sleep", "30"], Duration::from_millis(400));
    assert!(captured.windows.is_empty() && !captured.has_ended);
}
