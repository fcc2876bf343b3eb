//! A timer whose signal interrupts the system call that its thread is in.
#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::time::Duration;

use libc::c_int;

/// A timer of one thread, which alone is interrupted by it.
pub(super) struct Timer(libc::timer_t);

impl Timer {
    /// One that is silent.
    pub(super) fn of_this_thread() -> io::Result<Self> {
        let signal = signal();
        // SAFETY: all-zero is a valid action, set and event, and all of them outlive the calls that read them. The handler does
        // nothing at all. The timer is written by the call that makes it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            // No flag: a system call that it interrupts ends.
            action.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
            checked(libc::sigaction(signal, &raw const action, ptr::null_mut()))?;
            let mut only: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut only, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
            let (clock, mut timer) = (libc::CLOCK_MONOTONIC, ptr::null_mut());
            checked(libc::timer_create(clock, &raw mut event, &raw mut timer)).map(|()| Self(timer))
        }
    }

    /// It interrupts after some time, and again and again after another; after none, never.
    pub(super) fn set(&self, time: Duration, again: Duration) -> io::Result<()> {
        let of = |time: Duration| libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = libc::itimerspec {
            it_value: of(time),
            it_interval: of(again),
        };
        // SAFETY: the timer lives as long as this, and the times outlive the call.
        checked(unsafe { libc::timer_settime(self.0, 0, &raw const times, ptr::null_mut()) })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own, and not used any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Nobody else's: libraries that want one take the first of those for real-time programs.
fn signal() -> c_int {
    libc::SIGRTMAX() - 1
}

extern "C" fn nothing(_: c_int) {}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
