//! Waiting for a child, but not for ever. The kernel's own wait knows no timeout, and a handle that could be polled (a pidfd) is
//! a file more to make and to close: it would cost each run fifteen microseconds. So a timer's signal interrupts the wait.
#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// A signal that comes before the wait has begun would be lost, so it comes again.
const AGAIN: Duration = Duration::from_millis(1);

thread_local! {
    static ALARM: io::Result<Alarm> = Alarm::new();
}

/// Has a child of this process ended, now or before the time is over? It is left to be waited for. Any signal ends the wait early.
///
/// # Errors
/// The kernel's, if there is no such child or no timer to be had.
pub(super) fn has_ended_within(child: Pid, time: Duration) -> io::Result<bool> {
    ALARM.with(|alarm| {
        let alarm = alarm
            .as_ref()
            .map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        options.set(WaitIdOptions::NOHANG, time.is_zero());
        // A time of zero is for no alarm at all.
        let _ringing = alarm.ring_after(time)?;
        match waitid(WaitId::Pid(child), options) {
            Ok(status) => Ok(status.is_some()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

/// A timer of this thread, which alone is interrupted by it.
struct Alarm(libc::timer_t);

/// Is silenced when this is dropped.
struct Ringing<'a>(&'a Alarm);

impl Alarm {
    fn new() -> io::Result<Self> {
        let signal = signal();
        // SAFETY: all-zero is a valid action, event and set, and all of them outlive the calls that read them. The handler does
        // nothing at all. The timer is written by the call that makes it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            // No flag: a system call that it interrupts ends.
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            checked(libc::sigaction(signal, &raw const action, ptr::null_mut()))?;
            let mut only: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut only, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
            let mut timer = ptr::null_mut();
            checked(libc::timer_create(
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut timer,
            ))?;
            Ok(Self(timer))
        }
    }

    fn ring_after(&self, time: Duration) -> io::Result<Ringing<'_>> {
        self.set(time).map(|()| Ringing(self))
    }

    /// Zero is never.
    fn set(&self, time: Duration) -> io::Result<()> {
        let of = |time: Duration| libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = libc::itimerspec {
            it_value: of(time),
            it_interval: of(AGAIN),
        };
        // SAFETY: the timer lives as long as this, and the times outlive the call.
        checked(unsafe { libc::timer_settime(self.0, 0, &raw const times, ptr::null_mut()) })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own, and not used any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

impl Drop for Ringing<'_> {
    fn drop(&mut self) {
        // Fails on nothing that did not fail before.
        let _ = self.0.set(Duration::ZERO);
    }
}

/// Nobody else's: libraries that want one take the first of those for real-time programs.
fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

extern "C" fn nothing(_: libc::c_int) {}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
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
