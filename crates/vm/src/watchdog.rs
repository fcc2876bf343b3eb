//! A timer that pulls a thread out of KVM_RUN: from the deadline on it signals the thread again and again, until dropped.
//!
//! Repeated signals need no flag that a handler would have to set: one that arrives just before KVM_RUN is lost, the
//! next is not.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::syscall::{Handler, Timer};

/// How often the signal is repeated once the deadline has passed.
const AGAIN: Duration = Duration::from_millis(5);

/// How many watchdogs there are, and the process-wide signal handler while there are any.
static SHARED: Mutex<(usize, Option<Handler>)> = Mutex::new((0, None));

/// A deadline for the thread that made it.
pub(crate) struct Watchdog {
    ends: Instant,
    // Dropped in this order: no signal may come once the handler has gone.
    _timer: Timer,
    _handler: Shared,
}

impl Watchdog {
    /// Begins to watch the calling thread.
    pub(crate) fn new(deadline: Duration) -> io::Result<Self> {
        let handler = Shared::acquire()?;
        Ok(Self {
            ends: Instant::now() + deadline,
            _timer: Timer::new(deadline, AGAIN)?,
            _handler: handler,
        })
    }

    /// Has the time passed?
    pub(crate) fn expired(&self) -> bool {
        Instant::now() >= self.ends
    }
}

/// A share in the signal handler: the first installs it, the last puts back what was there.
struct Shared;

impl Shared {
    fn acquire() -> io::Result<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.1.is_none() {
            shared.1 = Some(Handler::install()?);
        }
        shared.0 += 1;
        Ok(Self)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.0 -= 1;
        if shared.0 == 0 {
            shared.1 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Watchdog;

    #[test]
    fn a_sleeping_system_call_is_interrupted_and_life_goes_on() {
        let watchdog = Watchdog::new(Duration::from_millis(20)).expect("a timer");
        let start = Instant::now();
        let time = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
        let slept = rustix::event::poll(&mut [], Some(&time));
        assert_eq!(slept, Err(rustix::io::Errno::INTR));
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(watchdog.expired());
    }
}
