//! Real processes on the real machine: a run that is stopped or killed at any moment leaves the pools as they were.
//!
//! Other programs may change the same pools at the same time. A number of pages of its own shows what this test left or took from
//! what they did; a round that they disturbed says nothing and is counted as such.
#![allow(clippy::print_stderr)]

use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use model::Bytes;
use rustix::process::{Pid, Signal};
use settings::{LiveSink, Writer};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const PAGE: Bytes = Bytes::mib(2);

/// Set in the processes that this test starts: their state directory, how many pages, and whether to hold one lease or
/// take many.
const STATE: &str = "HUGEWISE_TEST_STATE";
const PAGES: &str = "HUGEWISE_TEST_PAGES";
const HOLD: &str = "HUGEWISE_TEST_HOLD";

/// The rounds of one test must not disturb those of the other.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn a_run_killed_at_any_moment_is_undone_by_the_next() {
    if let Ok(state) = env::var(STATE) {
        return take_leases(Path::new(&state));
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = usable() else { return };
    let mut seen = Seen::default();
    for round in 0..20 {
        let temp = tempfile::tempdir().expect("tempdir");
        let state = temp.path().join("state");
        let (mut child, _out) = start("a_run_killed_at_any_moment_is_undone_by_the_next", &state, false);
        thread::sleep(Duration::from_micros(RandomState::new().hash_one(round) % 30_000));
        child.kill().expect("SIGKILL");
        // Not waited for yet: the next read may find it dying, or a zombie.
        let writer = Writer::new(&state, Box::new(LiveSink));
        let told = writer.recover().expect("recovered");
        child.wait().expect("reaped");
        let kept = journals(&state);
        assert!(kept.is_empty(), "{kept:?} after {told:?}");
        seen.undone += u32::from(!told.is_empty());
        seen.compare(before);
    }
    seen.report();
}

#[test]
fn a_run_that_is_told_to_stop_gives_back_itself() {
    if let Ok(state) = env::var(STATE) {
        return take_leases(Path::new(&state));
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = usable() else { return };
    let mut seen = Seen::default();
    for signal in [Signal::INT, Signal::TERM] {
        let temp = tempfile::tempdir().expect("tempdir");
        let state = temp.path().join("state");
        let (mut child, mut out) = start("a_run_that_is_told_to_stop_gives_back_itself", &state, true);
        let how = next_line(&mut out);
        assert!(how.contains("raised nr_overcommit_hugepages of 2M pages"), "{how}");
        assert_eq!(journals(&state).len(), 1);
        let pid = Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("signal");
        assert!(child.wait().expect("reaped").success(), "it ends in good order");
        assert_eq!(journals(&state), Vec::<PathBuf>::new());
        seen.undone += 1;
        seen.compare(before);
    }
    seen.report();
}

/// What the started process does until it is stopped: holds a lease, or takes and gives back one after the other.
fn take_leases(state: &Path) {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).expect("handler");
    }
    let hold = env::var(HOLD).is_ok();
    let pages = env::var(PAGES).expect("given").parse().expect("a number");
    let writer = Writer::new(state, Box::new(LiveSink));
    say("ready");
    while !stop.load(Ordering::Relaxed) {
        let lease = writer.lease_pool(PAGE, pages).expect("lease");
        say(&lease.how());
        thread::sleep(Duration::from_millis(5));
        while hold && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One line to the process that started this one; without it, there is no point in going on.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "> {line}").and_then(|()| out.flush()).expect("a reader");
}

/// Starts this same test as a process that takes leases, and waits until it is about to.
fn start(test: &str, state: &Path, hold: bool) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture"])
        .env(STATE, state)
        .env(PAGES, pages().to_string())
        .stdout(Stdio::piped());
    if hold {
        command.env(HOLD, "1");
    }
    let mut child = command.spawn().expect("started");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    assert_eq!(next_line(&mut out), "ready");
    (child, out)
}

/// What the started process says next, past what the test harness says.
fn next_line(out: &mut BufReader<ChildStdout>) -> String {
    let mut lines = out.lines().map(|line| line.expect("a line"));
    let line = lines.find_map(|line| Some(line.split_once("> ")?.1.to_owned()));
    line.expect("it says something before it ends")
}

fn journals(state: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(state) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("entry").path());
    paths.filter(|path| path.extension().is_some()).collect()
}

fn number(file: &str) -> Option<u64> {
    fs::read_to_string(format!("{POOL}/{file}")).ok()?.trim().parse().ok()
}

/// How many pages this process leases: few, but seldom as many as another test that runs at the same time.
fn pages() -> u64 {
    3 + u64::from(std::process::id()) % 200
}

/// The limit of surplus pages before the test, if it can run here.
fn usable() -> Option<u64> {
    let overcommit = number("nr_overcommit_hugepages");
    let free = number("free_hugepages").zip(number("resv_hugepages"));
    let why = match (overcommit, free) {
        _ if !rustix::process::geteuid().is_root() => "changing pools needs root",
        (Some(before), Some((free, resv))) if free < resv + pages() => return Some(before),
        (Some(_), Some(_)) => "the pool of 2M pages has free pages, so that a lease would change nothing",
        _ => "no 2M hugetlb pool here",
    };
    testing::skipped(why);
    None
}

/// What the rounds showed.
#[derive(Default)]
struct Seen {
    same: u32,
    disturbed: u32,
    /// Rounds that had something to give back.
    undone: u32,
}

impl Seen {
    fn compare(&mut self, before: u64) {
        let mut now = None;
        // Others who come and go may make the value look like ours for a moment.
        for _ in 0..100 {
            now = number("nr_overcommit_hugepages");
            if now == Some(before) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let now = now.expect("still there");
        assert_ne!(now, before + pages(), "pages were left");
        assert_ne!(now + pages(), before, "pages were taken from others");
        let count = if now == before {
            &mut self.same
        } else {
            &mut self.disturbed
        };
        *count += 1;
    }

    fn report(&self) {
        let Self {
            same,
            disturbed,
            undone,
        } = self;
        if *same == 0 {
            testing::skipped(&format!("others changed the pool in all of {disturbed} rounds"));
            return;
        }
        eprintln!("{same} rounds as before ({undone} had to be undone), {disturbed} disturbed by others");
        assert!(*undone > 0, "no round had anything to give back");
    }
}
