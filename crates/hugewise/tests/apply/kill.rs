//! The program is killed or interrupted at any moment of an apply: the next `undo` restores, an interrupted one restores itself.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::{Bench, MOUNTS};

/// Kills at random moments; every write of an apply and of an undo has its own test with a made machine in `settings`.
const KILLS: u32 = 100;
const INTERRUPTS: u32 = 6;

/// How long an apply takes here.
fn usual(bench: &Bench) -> Duration {
    let plan = bench.plan(bench.quiet_layers());
    let start = Instant::now();
    bench.apply(&plan, &[]);
    let usual = start.elapsed();
    bench.undo();
    usual
}

/// Starts an apply and strikes it at some moment.
fn strike(bench: &Bench, plan: &str, within: Duration, round: u32, signal: Signal) -> Child {
    let mut command = bench.command(&["apply", plan, "--yes"]);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let share = RandomState::new().hash_one(round) % 1000;
    thread::sleep(within.mul_f64(share as f64 / 1000.0));
    kill_process(Pid::from_child(&child), signal).expect("struck");
    child
}

#[test]
fn an_apply_killed_at_any_moment_is_undone() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let usual = usual(&bench);
    let mut cut = 0;
    for round in 0..KILLS {
        let plan = bench.plan(bench.quiet_layers());
        let mut child = strike(&bench, &plan, usual, round, Signal::KILL);
        child.wait().expect("ended");
        cut += u32::from(!bench.journals().is_empty());
        bench.undo();
        assert_eq!(bench.changed_since(&before), [""; 0], "round {round}");
        assert!(bench.journals().is_empty(), "round {round}");
    }
    assert!(cut > 0, "no kill came while there was something to undo");
}

#[test]
fn an_undo_that_is_told_to_end_is_done_first() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    if bench.apply(&bench.plan(bench.quiet_layers()), &[]).is_none() {
        return;
    }
    // It waits for a run that changes pools, once the mount is gone and the rest is not.
    let lock = File::open(bench.directory().join("state/lock")).expect("a lock");
    lock.lock().expect("locked");
    let mut command = bench.command(&["undo"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let is_mounted = || {
        fs::read_to_string(MOUNTS)
            .expect("mounts")
            .contains(&bench.mount_point())
    };
    while is_mounted() && child.try_wait().expect("a child").is_none() {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("struck");
    thread::sleep(Duration::from_millis(100));
    drop(lock);
    let code = child.wait().expect("ended").code();
    if code == Some(1) {
        // Others changed the pool, which says so.
        bench.undo();
    } else {
        assert_eq!(code, Some(0));
    }
    assert_eq!(bench.changed_since(&before), [""; 0]);
    assert!(bench.journals().is_empty());
}

#[test]
fn an_interrupted_apply_restores_before_it_ends() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let usual = usual(&bench);
    for round in 0..INTERRUPTS {
        let plan = bench.plan(bench.quiet_layers());
        let mut child = strike(&bench, &plan, usual, round, Signal::INT);
        match child.wait().expect("ended").code() {
            // It came to its end first.
            Some(0) => drop(bench.undo()),
            // Before the program watches for it, the signal ends it; a plan that others overtook is refused.
            Some(130 | 2) | None => {}
            other => panic!("round {round}: {other:?}"),
        }
        assert_eq!(bench.changed_since(&before), [""; 0], "round {round}");
        assert!(bench.journals().is_empty(), "round {round}");
    }
}
