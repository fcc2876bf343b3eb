//! Memory that is shared with a forked process, and the fork.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::Pid;

use super::Slot;
use crate::syscall::Blocked;

/// Free slots that this process shares with those that it forks, for as long as any of them lives.
pub(crate) fn shared(count: usize) -> io::Result<&'static [Slot]> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping, where the kernel likes it, takes nobody's memory.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), count * size_of::<Slot>(), protection, flags) }?;
    // SAFETY: the mapping is as long as so many slots and is never unmapped; a page is aligned for them, and of zeros, which are
    // valid in atomics. Nobody but them, which are shared for that, changes what is in it.
    Ok(unsafe { slice::from_raw_parts(at.cast(), count) })
}

/// Gives the number of a copy of this process that runs `life` with all signals blocked and `file` as the only file, number 0.
pub(crate) fn fork(file: &OwnedFd, life: impl FnOnce()) -> io::Result<Pid> {
    let blocked = Blocked::all();
    // SAFETY: the copy has this thread only. What it does in `life` takes no lock but malloc's, which the C library's fork
    // leaves usable; and it never returns from here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            keep_only(file);
            life();
            // SAFETY: ends the copy at once, without anything that was to be done at this process's end.
            unsafe { libc::_exit(0) }
        }
        pid => {
            drop(blocked);
            Pid::from_raw(pid).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// Has this done when the process ends by itself.
pub(crate) fn at_exit(done: extern "C" fn()) -> io::Result<()> {
    // SAFETY: it is a function of this program, which is never unloaded.
    match unsafe { libc::atexit(done) } {
        0 => Ok(()),
        _ => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

/// In a forked process.
fn keep_only(file: &OwnedFd) {
    // SAFETY: the table of files is this process's own, and nothing that is in it is used or dropped any more but this file.
    unsafe {
        libc::dup2(file.as_raw_fd(), 0);
        if libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9.
            for file in 1..libc::sysconf(libc::_SC_OPEN_MAX) {
                libc::close(file as libc::c_int);
            }
        }
    }
}

/// The file that a forked process was left with.
pub(crate) fn only_file() -> BorrowedFd<'static> {
    // SAFETY: it is open until the process ends.
    unsafe { BorrowedFd::borrow_raw(0) }
}
