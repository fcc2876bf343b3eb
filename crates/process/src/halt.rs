//! Stopping and continuing a program with everything that it started.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use host::Source;
use host::processes::Stat;
use rustix::process::{Signal, kill_process};

use super::cgroup::Folder;
use super::handles::{by_number, signal_group};
use super::tree;

/// A thread in an uninterruptible wait stops when that is over.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// A signal takes a few microseconds to arrive on another CPU.
const POLL_PERIOD: Duration = Duration::from_micros(200);

/// Stops all that descend from `root`, and waits until none of their threads runs: its cgroup, or else the process group that it leads
/// and those outside. `report` gets the ids of these before any of them is stopped by itself.
///
/// # Errors
/// If a thread is still not stopped after seconds; names it.
pub fn stop(source: &Source, root: u32, report: impl Fn(&[u32])) -> io::Result<()> {
    let until = Instant::now() + STOP_TIMEOUT;
    if let Some(cgroup) = Folder::of(source, root) {
        let is_frozen = cgroup.freeze(until)?;
        return is_frozen.then_some(()).ok_or_else(|| not_stopped(root));
    }
    if let Some(leader) = by_number(root) {
        signal_group(leader, Signal::STOP);
    }
    loop {
        // New children may have come until the last of them was stopped, so all are asked again.
        let family = tree::of(source, root);
        report(&family.pids);
        if let Some(why) = family.not_whole {
            return Err(io::Error::other(format!(
                "which processes it started could not be read: {why}"
            )));
        }
        let running: Vec<u32> = family.pids.into_iter().filter(|&pid| is_running(source, pid)).collect();
        let Some(first) = running.first() else { return Ok(()) };
        if Instant::now() >= until {
            return Err(not_stopped(*first));
        }
        running.iter().for_each(|&pid| signal(pid, Signal::STOP));
        thread::sleep(POLL_PERIOD);
    }
}

fn not_stopped(pid: u32) -> io::Error {
    let why = format!("process {pid} does not stop (a device or a file system keeps it waiting?)");
    io::Error::new(io::ErrorKind::TimedOut, why)
}

pub fn go_on(source: &Source, root: u32) {
    if let Some(cgroup) = Folder::of(source, root) {
        return cgroup.thaw();
    }
    signal_all(source, root, Signal::CONT);
}

/// Asks them to end; a stopped process handles the signal only once it is continued.
pub fn ask_to_end(source: &Source, root: u32) {
    signal_all(source, root, Signal::TERM);
    signal_all(source, root, Signal::CONT);
    if let Some(cgroup) = Folder::of(source, root) {
        cgroup.thaw();
    }
}

/// Is any thread of it neither stopped nor dead?
fn is_running(source: &Source, pid: u32) -> bool {
    let state = |task: u32| Stat::of_thread(source, pid, task)?.state();
    let states = tree::tasks(source, pid).into_iter().filter_map(state);
    states.into_iter().any(|state| !matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// A process whose parent is stopped is not reaped, so that its number still means it; fails only if it has ended.
fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = by_number(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Children with groups of their own first, so that none waits for one that is stopped.
fn signal_all(source: &Source, root: u32, what: Signal) {
    let descendants = tree::of(source, root).pids.into_iter().skip(1);
    descendants.for_each(|pid| signal(pid, what));
    if let Some(leader) = by_number(root) {
        signal_group(leader, what);
    }
}

#[cfg(test)]
mod tests {
    use super::is_running;
    use host::{Source, Tree};

    #[test]
    fn a_process_is_stopped_when_each_of_its_threads_is() {
        let machine = |states: &[&str]| {
            let mut tree = Tree::default();
            for (task, state) in (7..).zip(states) {
                tree = tree.file(
                    &format!("/proc/7/task/{task}/stat"),
                    format!("{task} (a) R (b) {state} 1 7 7"),
                );
            }
            Source::from_tree("made", tree)
        };
        assert!(!is_running(&machine(&["T", "T", "Z"]), 7));
        assert!(is_running(&machine(&["T", "S"]), 7) && is_running(&machine(&["R"]), 7));
        assert!(!is_running(&machine(&[]), 7), "it has ended");
    }
}
