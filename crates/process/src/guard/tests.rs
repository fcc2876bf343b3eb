//! Which processes are ended and which are not; that a killed comparison leaves none behind is tested with the whole program.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::{Source, Tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::{FREE, Guard, Place, Slot, end_marked, is_same, now};

/// Longer than any test.
fn sleeper() -> Child {
    Command::new("sleep")
        .arg("63.5")
        .process_group(0)
        .spawn()
        .expect("starts")
}

fn told(target: i32, since: u64) -> Slot {
    Slot {
        target: target.into(),
        since: since.into(),
    }
}

fn signal_at_end(mut child: Child) -> Option<i32> {
    child.wait().expect("ends").signal()
}

/// The guardian is such a copy, and looks at processes that way.
#[test]
fn a_copy_of_this_process_reads_what_another_process_could_hold_up() {
    let read = || Source::live().bytes("/proc/self/environ").into_result().is_ok();
    assert!(read());
    let (mut told, mut teller) = std::io::pipe().expect("a pipe");
    let life = || {
        let began = Instant::now();
        let is_soon = read() && began.elapsed() < Duration::from_secs(2);
        teller.write_all(&[u8::from(is_soon)]).expect("told");
    };
    let copy = host::copy::fork(life).expect("a copy");
    let is_told = poll(
        &mut [PollFd::new(&told, PollFlags::IN)],
        Some(&Timespec { tv_sec: 20, tv_nsec: 0 }),
    );
    let _ = rustix::process::kill_process(copy, Signal::KILL);
    crate::syscall::wait(copy).expect("its end");
    assert_eq!(is_told, Ok(1), "it hangs");
    let mut is_soon = [0];
    told.read_exact(&mut is_soon).expect("an answer");
    assert_eq!(is_soon, [1]);
}

#[test]
fn a_group_and_a_process_are_ended_and_nobody_who_came_to_their_number_later() {
    for sign in [-1, 1] {
        let mut child = sleeper();
        let target = sign * child.id().cast_signed();
        told(target, 0).end(&Source::live());
        assert!(child.try_wait().expect("looked").is_none(), "it began long after boot");
        told(target, now()).end(&Source::live());
        assert_eq!(signal_at_end(child), Some(libc::SIGKILL));
    }
}

#[test]
fn what_a_process_started_ends_with_it_in_whatever_session() {
    let mut line = Command::new("sh");
    line.args(["-c", "setsid -w sleep 63.5; true"]).process_group(0);
    let child = line.spawn().expect("starts");
    let all = || crate::tree::of(&Source::live(), child.id()).pids;
    while all().len() < 2 {
        sleep(Duration::from_millis(1));
    }
    let descendant = all()[1];
    told(child.id().cast_signed(), now()).end(&Source::live());
    assert_eq!(signal_at_end(child), Some(libc::SIGKILL));
    let is_alive = || {
        let state = std::fs::read_to_string(format!("/proc/{descendant}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z")
    };
    let began = Instant::now();
    while is_alive() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(1));
    }
    assert!(!is_alive(), "{descendant}");
}

/// Its parent, whom alone the guardian knew, has ended already.
#[test]
fn an_orphan_in_a_session_of_its_own_is_told_by_its_variable() {
    let mut line = Command::new("sh");
    line.args(["-c", "setsid sleep 63.5 & echo $!"])
        .env("HUGEWISE_TEST", "12");
    let output = line.stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = output.spawn().expect("starts");
    let mut orphan = String::new();
    let read = BufReader::new(child.stdout.take().expect("its output")).read_line(&mut orphan);
    assert!(read.is_ok() && child.wait().is_ok_and(|status| status.success()));
    let orphan: u32 = orphan.trim().parse().expect("a number");
    let source = Source::live();
    let until = Instant::now() + Duration::from_secs(20);
    end_marked(&source, b"HUGEWISE_TEST=1", until);
    let finds = || crate::tree::with_variable(&source, b"HUGEWISE_TEST=12");
    assert_eq!(finds(), [orphan]);
    end_marked(&source, b"HUGEWISE_TEST=12", until);
    assert!(finds().is_empty());
}

#[test]
fn a_process_is_the_same_if_it_began_before_it_was_told() {
    let line = "71 (a) S 1 71 71 0 -1 4194560 1 0 1 0 1 2 0 0 20 0 1 0 500 4096 100";
    let machine = Source::from_tree("made", Tree::new().file("/proc/71/stat", line));
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(is_same(&machine, 71, 500 * tick), Some(true));
    assert_eq!(is_same(&machine, 71, 499 * tick + tick / 2), Some(false));
    assert_eq!(is_same(&machine, 72, 500 * tick), None);
}

#[test]
fn a_place_is_free_again_when_it_is_given_back() {
    let place = Place::free().expect("a guardian");
    assert!(place.hold(std::process::id()) && !place.hold(0));
    let slot = place.0;
    assert_eq!(slot.target.load(Ordering::Relaxed), std::process::id().cast_signed());
    drop(place);
    let target = slot.target.load(Ordering::Relaxed);
    assert!(target == FREE || target != std::process::id().cast_signed());
}

#[test]
fn a_guardian_that_is_dismissed_is_gone_and_not_left_for_others_to_wait_for() {
    // Other tests' programs are none of its own.
    let guard = Guard::start(None, b"HUGEWISE_TEST=none").expect("a guardian");
    let place = format!("/proc/{}", guard.pid);
    assert!(std::fs::exists(&place).expect("looked"));
    guard.dismiss();
    assert!(!std::fs::exists(&place).expect("looked"), "{place}");
    guard.dismiss();
}

/// A killed process closes its files one after the other, so that it may hold a lock for a while after the pipe.
#[test]
fn the_last_thing_is_done_when_a_killed_process_has_ended() {
    static PLACE: OnceLock<(u32, PathBuf)> = OnceLock::new();
    fn last() {
        let (copy, told) = PLACE.get().expect("set before");
        let draft = told.with_extension("draft");
        let _ = std::fs::write(&draft, (parent_id() == *copy).to_string());
        let _ = std::fs::rename(draft, told);
    }
    let folder = tempfile::tempdir().expect("a directory");
    let told = folder.path().join("told");
    let life = || {
        super::at_end(last);
        PLACE.get_or_init(|| (std::process::id(), told.clone()));
        let guard = Guard::start(None, b"HUGEWISE_TEST=none").expect("a guardian");
        drop(guard.alive.lock().expect("not poisoned").take());
        sleep(Duration::from_millis(300));
    };
    let copy = host::copy::fork(life).expect("a copy");
    crate::syscall::wait(copy).expect("its end");
    appears(&told);
    assert_eq!(std::fs::read_to_string(&told).expect("an answer"), "false");
}

fn appears(path: &Path) {
    let began = Instant::now();
    while !path.exists() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(1));
    }
    assert!(path.exists(), "{}", path.display());
}
