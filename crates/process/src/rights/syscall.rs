//! What the libraries lack of giving up rights. All of it runs in a child, in the memory of its parent: nothing allocates or takes a lock.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// `linux/keyctl.h`.
const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
/// Marks descriptors to be closed at exec (linux/close_range.h).
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
/// Where the kernel lacks close_range with it (before Linux 5.11), so many descriptors are marked one by one.
const MOST_DESCRIPTORS: u64 = 1 << 16;

/// A session keyring without a name or a key in it. A kernel without keys, and a filter of system calls that refuses this one, leave none
/// to be read either.
pub(super) fn join_new_session_keyring() -> io::Result<()> {
    let unnamed: libc::c_long = 0;
    // SAFETY: the call takes numbers and a null pointer, and changes the keyring of this thread alone.
    match unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, unnamed) } {
        -1 => match io::Error::last_os_error() {
            error if [Errno::NOSYS, Errno::PERM].contains(&Errno::from_io_error(&error).unwrap_or(Errno::IO)) => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

/// All but the three standard files and these are closed at exec.
pub(super) fn keep_only_standard_files(inherited: &[RawFd]) -> io::Result<()> {
    // SAFETY: the call takes numbers only, and marks descriptors of this process.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) } != 0 {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS);
        for descriptor in 3..limit.min(MOST_DESCRIPTORS) as libc::c_int {
            // SAFETY: the call takes numbers only; of a descriptor that is not open it reports an error and does nothing.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    for descriptor in inherited {
        // SAFETY: likewise.
        unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) };
    }
    Ok(())
}

/// `oom_score_adj` 0: root's shell, or a service, may be exempt. Only this process's own changes, as it is one that its parent waits for.
pub(super) fn be_ended_like_any_other() -> io::Result<()> {
    let file = open(
        c"/proc/self/oom_score_adj",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    // A container may have /proc for reading only.
    match file.and_then(|file| write(file, b"0")) {
        Ok(_) | Err(Errno::ROFS | Errno::ACCESS | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Neither in real time nor before others.
pub(super) fn be_scheduled_like_any_other() -> io::Result<()> {
    let usual = libc::sched_param { sched_priority: 0 };
    // SAFETY: the calls take numbers, and the parameter outlives the call; they change this process alone.
    let result = unsafe {
        if [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&libc::sched_getscheduler(0)) {
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const usual)
        } else if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0)
        } else {
            0
        }
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A namespace of its own for shared memory of System V and message queues: what is in it goes with its last process.
pub(super) fn leave_shared_memory() -> bool {
    // SAFETY: a process that shares its memory with its parent has its own namespaces.
    unsafe { unshare_unsafe(UnshareFlags::NEWIPC) }.is_ok()
}

pub(super) fn leave_mounts() -> io::Result<()> {
    // SAFETY: likewise; its current directory is its own, too.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}
