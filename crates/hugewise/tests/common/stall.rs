//! How long the machine itself held a process up: a bound of time is for what the program does, not for a machine that is busy.

use std::fmt::Debug;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;

/// What has not ended by then lives on.
pub const HANGS: Duration = Duration::from_secs(60);
/// What a signal may take to end a command, and what anything may take to end after its parent: looked at where many runs are
/// asked for, without what the machine kept it waiting.
pub const PROMPT: Duration = Duration::from_secs(1);
/// Between two trials.
const PAUSE: Duration = Duration::from_millis(100);

/// A process that does nothing, ended by a signal again and again: how long that took, and when.
pub struct Reference {
    trials: Arc<Mutex<Vec<(Instant, Duration)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reference {
    pub fn start() -> Self {
        let trials: Arc<Mutex<Vec<(Instant, Duration)>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (log, until) = (Arc::clone(&trials), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let trial = trial();
                log.lock().unwrap_or_else(PoisonError::into_inner).push(trial);
                thread::sleep(PAUSE);
            }
        });
        Self {
            trials,
            is_over,
            thread: Some(thread),
        }
    }

    /// The longest trial that touched a stretch of time.
    pub fn longest(&self, from: Instant, to: Instant) -> Duration {
        let trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        let touched = trials.iter().rev().take_while(|(began, took)| *began + *took >= from);
        let touched = touched.filter(|(began, _)| *began <= to);
        touched.map(|(_, took)| *took).max().unwrap_or_default()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn trial() -> (Instant, Duration) {
    let mut child = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    let began = Instant::now();
    child.kill().expect("killed");
    child.wait().expect("ended");
    (began, began.elapsed())
}

/// How long the main thread of a process was ready to run and no CPU was free, so far (`/proc/PID/schedstat`); `None` once it
/// has ended, or where the kernel does not count it.
pub fn waited(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// System time of all threads of a process so far (`/proc/PID/stat`, ticks of 10 ms).
fn in_kernel(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the 15th field is the 13th after it.
    let ticks: u64 = text.rsplit_once(')')?.1.split_whitespace().nth(12)?.parse().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// SIGINT, or SIGTERM where this process and so its children ignore SIGINT, as a shell makes those that it starts in the background.
pub fn interrupt() -> Signal {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .expect("a set");
    match ignored >> (Signal::INT.as_raw() - 1) & 1 {
        0 => Signal::INT,
        _ => Signal::TERM,
    }
}

/// How long a process took to end after a signal, and how much of that the machine kept it waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    pub wall: Duration,
    pub held_up: Duration,
    /// In system calls and page faults, which hear a signal only when they end.
    pub in_kernel: Duration,
}

impl Took {
    /// System time counted as the machine's, too.
    pub fn without_system_time(self) -> Self {
        let held_up = self.held_up + self.in_kernel;
        Self { held_up, ..self }
    }

    /// What the program itself took.
    pub fn own(self) -> Duration {
        self.wall.saturating_sub(self.held_up)
    }
}

/// Follows the end of a process.
pub struct Ending {
    began: Instant,
    waited: Duration,
    latest: Duration,
    system: Duration,
    latest_system: Duration,
}

impl Ending {
    pub fn begin(pid: u32) -> Self {
        let (waited, system) = (waited(pid).unwrap_or_default(), in_kernel(pid).unwrap_or_default());
        Self {
            began: Instant::now(),
            waited,
            latest: waited,
            system,
            latest_system: system,
        }
    }

    /// Call now and then while it lives.
    pub fn look(&mut self, pid: u32) {
        self.latest = waited(pid).unwrap_or_default().max(self.latest);
        self.latest_system = in_kernel(pid).unwrap_or_default().max(self.latest_system);
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn over(&self, reference: &Reference) -> Took {
        let now = Instant::now();
        Took {
            wall: now - self.began,
            held_up: (self.latest - self.waited).max(reference.longest(self.began, now)),
            in_kernel: self.latest_system - self.system,
        }
    }
}

/// Waits until nothing is left; with a reference, that may take a second and no longer.
#[track_caller]
pub fn assert_gone<L>(what: &str, reference: Option<&Reference>, left: impl Fn() -> L)
where
    L: Debug + Default + PartialEq,
{
    let began = Instant::now();
    loop {
        let (rest, now) = (left(), Instant::now());
        if rest == L::default() {
            let own = reference.map(|reference| (now - began).saturating_sub(reference.longest(began, now)));
            assert!(
                own.is_none_or(|own| own < PROMPT),
                "{what}: the last one took {own:?} to end"
            );
            return;
        }
        assert!(now - began < HANGS, "{what}: left behind: {rest:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
