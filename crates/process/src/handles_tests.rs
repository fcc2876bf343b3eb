//! Ending real processes that are no children of this one.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use host::Source;
use rustix::process::{Pid, Signal};

use super::{END_TIMEOUT, Handles, group_has_ended_by, signal_group};
use crate::tree;

/// A shell in a group of its own, which starts so many processes and waits for them.
fn family(line: &str, size: usize) -> (Child, Pid) {
    let mut command = Command::new("sh");
    command.args(["-c", line]).process_group(0);
    let child = command.spawn().expect("starts");
    let began = Instant::now();
    while tree::of(&Source::live(), child.id()).pids.len() < size {
        assert!(began.elapsed() < Duration::from_secs(20), "it starts them");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a number");
    (child, pid)
}

fn soon() -> Instant {
    Instant::now() + END_TIMEOUT
}

#[test]
fn a_group_without_its_leader_is_waited_for_until_each_member_has_ended() {
    let source = Source::live();
    let (mut leader, group) = family("sleep 64.5 & sleep 64.5 & wait", 3);
    let number = leader.id().cast_signed();
    leader.kill().expect("killed");
    leader.wait().expect("ended");
    assert_eq!(tree::group(&source, number).map(|members| members.len()), Some(2));
    assert!(!group_has_ended_by(&source, group, Instant::now()), "both still sleep");
    signal_group(group, Signal::KILL);
    assert!(group_has_ended_by(&source, group, soon()));
}

#[test]
fn handles_reach_what_left_the_group_and_no_process_that_is_another_one() {
    let source = Source::live();
    let (mut leader, group) = family("setsid -w sleep 64.25; true", 2);
    let other = Handles::with_descendants(&source, leader.id(), || false);
    other.signal(Signal::KILL);
    assert!(
        leader.try_wait().expect("looked").is_none(),
        "it is not the one that was meant"
    );
    let all = Handles::with_descendants(&source, leader.id(), || true);
    assert!(!all.have_ended_by(Instant::now()));
    signal_group(group, Signal::KILL);
    leader.wait().expect("ended");
    all.end();
    assert!(all.have_ended_by(Instant::now()), "the other session's, too");
}
