//! Waiting for a child, but not for ever. The kernel's own wait knows no timeout, and a handle that could be polled (a pidfd) is
//! a file more to make and to close: it would cost each run fifteen microseconds. So an alarm interrupts the wait.

use std::io;
use std::time::Duration;

use chase::alarm::Alarm;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// A signal that comes before the wait has begun would be lost, so it comes again.
const AGAIN: Duration = Duration::from_millis(1);

thread_local! {
    static ALARM: io::Result<Alarm> = Alarm::of_this_thread();
}

/// Has a child of this process ended, now or before the time is over? It is left to be waited for. Other signals may end
/// the wait early.
///
/// # Errors
/// The kernel's, if there is no such child or no timer to be had.
pub(crate) fn has_ended_within(child: Pid, time: Duration) -> io::Result<bool> {
    let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    options.set(WaitIdOptions::NOHANG, time.is_zero());
    ALARM.with(|alarm| {
        let alarm = alarm
            .as_ref()
            .map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let _ringing = Ringing::after(alarm, time)?;
        match waitid(WaitId::Pid(child), options) {
            Ok(status) => Ok(status.is_some()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

/// An alarm that rings; it is silent again when this is dropped.
struct Ringing<'a>(&'a Alarm);

impl<'a> Ringing<'a> {
    fn after(alarm: &'a Alarm, time: Duration) -> io::Result<Self> {
        alarm.set(time, AGAIN).map(|()| Self(alarm))
    }
}

impl Drop for Ringing<'_> {
    fn drop(&mut self) {
        // Fails on nothing that did not fail before.
        let _ = self.0.set(Duration::ZERO, AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Instant;

    use super::*;

    fn sleeping(seconds: &str) -> (Child, Pid) {
        let child = Command::new("sleep").arg(seconds).spawn().expect("sleep");
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a number");
        (child, pid)
    }

    #[test]
    fn a_wait_ends_with_the_child_or_with_the_time_and_leaves_the_child_to_be_waited_for() {
        let (mut child, pid) = sleeping("0.3");
        let began = Instant::now();
        assert!(!has_ended_within(pid, Duration::ZERO).expect("no wait"));
        assert!(!has_ended_within(pid, Duration::from_nanos(1)).expect("a wait that is over before it begins"));
        assert!(!has_ended_within(pid, Duration::from_millis(20)).expect("a wait"));
        assert!(began.elapsed() >= Duration::from_millis(20));
        for _ in 0..2 {
            assert!(has_ended_within(pid, Duration::from_secs(60)).expect("a wait"));
        }
        assert!(child.wait().expect("its end").success());
        assert!(has_ended_within(pid, Duration::ZERO).is_err(), "there is no such child");
    }

    #[test]
    fn each_thread_is_interrupted_by_its_own_timer() {
        let waits = [0, 1, 2, 3].map(|_| {
            std::thread::spawn(|| {
                let (mut child, pid) = sleeping("10");
                let waited = (0..20).map(|_| has_ended_within(pid, Duration::from_millis(3)).expect("a wait"));
                let ended = waited.filter(|ended| *ended).count();
                child.kill().expect("killed");
                assert!(has_ended_within(pid, Duration::from_secs(60)).expect("a wait"));
                child.wait().expect("its end");
                ended
            })
        });
        assert_eq!(waits.map(|wait| wait.join().expect("no panic")), [0; 4]);
    }
}
