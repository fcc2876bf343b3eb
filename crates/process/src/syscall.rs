//! A child's end with its accounts, and signals that wait.
#![allow(unsafe_code)]

use std::io;

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// No signal reaches this thread, or a child that it makes, for as long as this lives.
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    pub(crate) fn all() -> Self {
        // SAFETY: all-zero is a valid set, and both calls only fill in or read the sets of this frame. They fail on nothing else
        // than a first argument unlike this one.
        unsafe {
            let (mut every, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut every);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that the kernel told.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// How a child ended and what it used, its own children that it waited for included.
pub struct Ended {
    /// As `wait` tells it.
    pub status: std::process::ExitStatus,
    /// CPU seconds in user mode.
    pub user: f64,
    /// CPU seconds in the kernel.
    pub system: f64,
    /// The largest resident set of any one process, in bytes.
    pub max_rss: u64,
    /// Minor faults.
    pub faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub waits: u64,
    /// Involuntary ones.
    pub preemptions: u64,
}

/// How a child that has ended ended, without taking its accounts.
///
/// # Errors
/// The kernel's; that it has not ended is `WouldBlock`.
pub(crate) fn peek(child: Pid) -> io::Result<std::process::ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(child), options)?;
    let status = status.ok_or(io::ErrorKind::WouldBlock)?;
    // As `wait` would tell it: a code in the second byte, or a signal in the first.
    let code = status
        .exit_status()
        .map(|code| code << 8)
        .or(status.terminating_signal());
    Ok(std::process::ExitStatus::from_raw(code.unwrap_or_default()))
}

/// Waits for the end of a child of this process.
///
/// # Errors
/// The kernel's, if there is no such child.
pub(crate) fn wait(pid: Pid) -> io::Result<Ended> {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, and the call only fills in what it is given.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of this frame.
        let result = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Ended {
        status: std::process::ExitStatus::from_raw(status),
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        max_rss: usage.ru_maxrss.cast_unsigned() * 1024,
        faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        waits: usage.ru_nvcsw.cast_unsigned(),
        preemptions: usage.ru_nivcsw.cast_unsigned(),
    })
}
