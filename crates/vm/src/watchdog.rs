//! A deadline that pulls a thread out of KVM_RUN: from then on an alarm interrupts it again and again, until dropped.

use std::io;
use std::time::{Duration, Instant};

use chase::alarm::Alarm;

/// How often the signal is repeated once the deadline has passed.
const AGAIN: Duration = Duration::from_millis(5);

/// A deadline for the thread that made it.
pub(crate) struct Watchdog {
    ends: Instant,
    _alarm: Alarm,
}

impl Watchdog {
    /// Begins to watch the calling thread.
    pub(crate) fn new(deadline: Duration) -> io::Result<Self> {
        let alarm = Alarm::of_this_thread()?;
        // A time of zero would mean "never".
        alarm.set(deadline.max(Duration::from_nanos(1)), AGAIN)?;
        Ok(Self {
            ends: Instant::now() + deadline,
            _alarm: alarm,
        })
    }

    /// Has the time passed?
    pub(crate) fn expired(&self) -> bool {
        Instant::now() >= self.ends
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
