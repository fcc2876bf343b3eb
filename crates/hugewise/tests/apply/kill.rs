//! The program is killed or interrupted at any moment of an apply: the next `undo` restores, an interrupted one restores itself.

use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::code;
use crate::machine::Bench;

/// Kills at random moments; every write of an apply and of an undo has its own test with a made machine in `tune`.
const KILLS: u32 = 40;
const INTERRUPTS: u32 = 6;

/// How long an apply takes here, undisturbed.
fn usual(bench: &Bench, plan: &str) -> Duration {
    let start = Instant::now();
    assert_eq!(code(&bench.run(&["apply", plan, "--yes"])), 0);
    let usual = start.elapsed();
    assert_eq!(code(&bench.run(&["undo"])), 0);
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
    let plan = bench.plan(bench.quiet_layers());
    let usual = usual(&bench, &plan);
    let mut cut = 0;
    for round in 0..KILLS {
        let mut child = strike(&bench, &plan, usual, round, Signal::KILL);
        child.wait().expect("ended");
        cut += u32::from(!bench.journals().is_empty());
        let run = bench.run(&["undo"]);
        assert_eq!(code(&run), 0, "round {round}: {} {}", run.out, run.err);
        assert_eq!(bench.picture(), before, "round {round}: {}", run.out);
        assert!(bench.journals().is_empty(), "round {round}");
    }
    assert!(cut > 0, "no kill came while there was something to undo");
}

#[test]
fn an_interrupted_apply_restores_before_it_ends() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let plan = bench.plan(bench.quiet_layers());
    let usual = usual(&bench, &plan);
    for round in 0..INTERRUPTS {
        let mut child = strike(&bench, &plan, usual, round, Signal::INT);
        match child.wait().expect("ended").code() {
            // It came to its end first.
            Some(0) => assert_eq!(code(&bench.run(&["undo"])), 0),
            // Before the program watches for it, the signal ends it.
            Some(130) | None => {}
            other => panic!("round {round}: {other:?}"),
        }
        assert_eq!(bench.picture(), before, "round {round}");
        assert!(bench.journals().is_empty(), "round {round}");
    }
}
