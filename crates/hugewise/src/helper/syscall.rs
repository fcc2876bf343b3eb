//! What a helper does between fork and exec: the only way to give up a session, a terminal and descriptors.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid, umask,
};
use rustix::thread::set_no_new_privs;

/// Marks descriptors to be closed at exec instead of closing them (linux/close_range.h): one of them carries the news of a failed
/// exec.
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
/// Where the kernel lacks close_range (before Linux 5.11), so many descriptors are marked one by one.
const MOST_DESCRIPTORS: u64 = 1 << 16;

/// Shuts the program in, in the child, after its user was set (a new user clears the signal at its parent's death).
pub(super) fn shut_in(command: &mut Command) {
    let parent = getpid();
    let enter = move || {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            return Err(io::Error::from(Errno::SRCH));
        }
        set_no_new_privs(true)?;
        umask(Mode::from_raw_mode(0o077));
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        setrlimit(Resource::Core, none)?;
        keep_no_descriptors()
    };
    // SAFETY: between fork and exec the closure makes system calls only: it allocates nothing, takes no lock, and touches no
    // memory but its own stack.
    unsafe { command.pre_exec(enter) };
}

/// All but the three standard streams are closed at exec.
fn keep_no_descriptors() -> io::Result<()> {
    // SAFETY: the call takes numbers only, and marks descriptors of this process.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS);
    for descriptor in 3..limit.min(MOST_DESCRIPTORS) as libc::c_int {
        // SAFETY: the call takes numbers only; of a descriptor that is not open it reports an error and does nothing.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}
