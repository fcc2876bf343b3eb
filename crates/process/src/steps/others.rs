//! The other threads of a process, which stand still for the time of a window.
//!
//! To them a thread that is stepped seems to hang. Go's scheduler gives its work to another thread after 10 ms, and a virtual machine may do the like.

use std::thread;
use std::time::{Duration, Instant};

use host::Source;

use super::taken::Taken;
use crate::tree;

/// A thread that has not stopped by then is in the kernel for longer, and does nothing else.
const TIMEOUT: Duration = Duration::from_millis(100);
const POLL_PERIOD: Duration = Duration::from_micros(200);

/// Stops all threads of a process but one, until what this gives is dropped. Those that cannot be traced go on.
pub(super) fn stop(process: u32, thread: u32) -> Vec<Taken> {
    let mut threads = tree::tasks(&Source::live(), process);
    threads.retain(|&other| other != thread);
    // The first thread last: it is not gone before the others are.
    threads.sort_by_key(|&other| other == process);
    let taken = threads.into_iter().filter_map(|other| Taken::ask(process, other).ok());
    let mut taken: Vec<Taken> = taken.collect();
    let until = Instant::now() + TIMEOUT;
    for one in &mut taken {
        while !one.is_still().unwrap_or(true) && Instant::now() < until {
            thread::sleep(POLL_PERIOD);
        }
    }
    taken
}
