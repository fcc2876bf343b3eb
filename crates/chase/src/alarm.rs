//! A timer whose signal interrupts the system call that its thread is in: for calls that know no timeout.
//!
//! The handler does nothing, and needs no flag to set: a signal that arrives just before the call is lost, but the next is
//! not. It stays for the life of the process, so that no alarm that is still on its way can end it.

use std::io;
use std::ptr;
use std::time::Duration;

use libc::c_int;

use crate::syscall::checked;

/// An alarm for the thread that made it, which alone is interrupted; it is gone when this is dropped.
#[derive(Debug)]
pub struct Alarm(libc::timer_t);

impl Alarm {
    /// A silent one.
    ///
    /// # Errors
    /// The kernel's, if there is no timer to be had.
    pub fn of_this_thread() -> io::Result<Self> {
        install_handler()?;
        unblock()?;
        // SAFETY: all-zero is a valid event.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer = ptr::null_mut();
        // SAFETY: both pointers are to values of this frame, of the right types.
        checked(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) }.into())?;
        Ok(Self(timer))
    }

    /// Lets it ring after `first`, and then every `again`; after a time of zero, never.
    ///
    /// # Errors
    /// The kernel's, for times beyond its own.
    pub fn set(&self, first: Duration, again: Duration) -> io::Result<()> {
        let times = libc::itimerspec {
            it_value: timespec(first),
            it_interval: timespec(again),
        };
        // SAFETY: the timer lives as long as this, and the times outlive the call; the old ones are not asked for.
        checked(unsafe { libc::timer_settime(self.0, 0, &raw const times, ptr::null_mut()) }.into())
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own, and not used any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Real-time, so that no other part of the program uses it by chance.
fn signal() -> c_int {
    libc::SIGRTMIN() + 5
}

extern "C" fn nothing(_: c_int) {}

fn install_handler() -> io::Result<()> {
    // SAFETY: all-zero is a valid action: no flags (so that calls are interrupted) and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
    // SAFETY: the action outlives the call, and its handler is safe at any time.
    checked(unsafe { libc::sigaction(signal(), &raw const action, ptr::null_mut()) }.into())
}

/// The parent may have blocked the signal. Nothing else in this process uses it, so it may stay unblocked.
fn unblock() -> io::Result<()> {
    // SAFETY: all-zero is a valid set, and it outlives the calls; the old mask is not asked for.
    let failed = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::event::{Timespec, poll};
    use rustix::io::Errno;

    use super::Alarm;

    #[test]
    fn a_sleeping_system_call_is_interrupted_until_the_alarm_is_silent_again() {
        let alarm = Alarm::of_this_thread().expect("a timer");
        let sleep = |seconds, nanoseconds| {
            let time = Timespec {
                tv_sec: seconds,
                tv_nsec: nanoseconds,
            };
            poll(&mut [], Some(&time))
        };
        let begun = Instant::now();
        alarm
            .set(Duration::from_millis(5), Duration::from_millis(5))
            .expect("set");
        for _ in 0..3 {
            assert_eq!(sleep(20, 0), Err(Errno::INTR));
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        alarm.set(Duration::ZERO, Duration::from_millis(5)).expect("silent");
        assert_eq!(sleep(0, 50_000_000), Ok(0));
    }
}
