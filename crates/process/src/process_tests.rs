//! What a program leaves behind: ended with it, and in its accounts or known to be missing.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use super::{Done, Process};
use crate::cgroup::Cgroup;
use crate::spawn::Order;
use crate::watch::Attention;

/// A daemon, forked twice and in a session of its own, works before its starter ends. It writes its id to the file `$0`.
const DAEMON: &str = "export FILE=$0; sh -c 'setsid sh -c \"$WORK\" &'; until [ -s $FILE ]; do sleep 0.01; done";
const WORK: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $$ > $FILE; exec sleep 64.5";

fn start(words: &[&str]) -> Process {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let order = Order {
        env: &[("WORK".into(), WORK.into())],
        ..Order::plain(&words)
    };
    Process::start(&order, Attention::Free, false).expect("starts")
}

fn finished(mut process: Process) -> Done {
    let has_ended = process.wait(Some(Duration::from_secs(60)), &|| false, &mut || {});
    assert!(has_ended.expect("waited"));
    process.end().expect("ends")
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z")
}

#[test]
fn a_daemon_in_a_session_of_its_own_is_counted_and_ended() {
    if Cgroup::new().is_none() {
        return testing::skipped("no cgroup v2 that this test may change");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("pid");
    let process = start(&["sh", "-c", DAEMON, file.to_str().expect("a name")]);
    let place = process.started.cgroup.as_ref().expect("a cgroup").path();
    let done = finished(process);
    let daemon: u32 = fs::read_to_string(&file)
        .expect("written")
        .trim()
        .parse()
        .expect("its id");
    assert!(!is_alive(daemon), "{daemon}");
    // It is removed, or empty and free for another program.
    let left = fs::read_to_string(place.join("cgroup.procs")).unwrap_or_default();
    assert!(!left.contains(&daemon.to_string()), "{}", place.display());
    let cpu = done.ended.cpu.expect("counted");
    assert!(cpu.total() > 0.03, "{cpu:?}");
    assert_eq!(done.ended.counts, None, "nothing waited for the daemon");
    // Linux kills what is started in a cgroup whose processes were killed.
    let next = finished(start(&["true"]));
    assert!(next.ended.status.success(), "{:?}", next.ended.status);
}

#[test]
fn a_program_that_leaves_nothing_has_all_accounts() {
    if Cgroup::new().is_none() {
        return testing::skipped("no cgroup v2 that this test may change: children of other tests count as left");
    }
    let done = finished(start(&["sh", "-c", "true; sh -c true"]));
    assert!(done.ended.cpu.is_some_and(|cpu| cpu.total() > 0.0));
    assert!(done.ended.counts.is_some_and(|counts| counts.faults > 0));
}

#[test]
fn all_members_of_a_cgroup_are_stopped_and_go_on() {
    if Cgroup::new().is_none() {
        return testing::skipped("no cgroup v2 that this test may change");
    }
    let line = "setsid sh -c 'while :; do echo x; done' & while :; do echo y; done";
    let mut process = start(&["sh", "-c", line]);
    let source = host::Source::live();
    let wrote = |process: &Process| process.outputs.output.metadata().expect("a file").len();
    let grows = |process: &Process| {
        let (before, began) = (wrote(process), Instant::now());
        while wrote(process) == before && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        wrote(process) > before
    };
    assert!(grows(&process));
    crate::halt::stop(&source, process.id(), |_| {}).expect("stopped");
    assert_eq!(crate::tree::of(&source, process.id()).pids.len(), 2);
    let stopped = wrote(&process);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(wrote(&process), stopped);
    crate::halt::go_on(&source, process.id());
    assert!(grows(&process));
    crate::halt::ask_to_end(&source, process.id());
    process
        .wait(Some(Duration::from_secs(20)), &|| false, &mut || {})
        .expect("ends");
    drop(process);
}
