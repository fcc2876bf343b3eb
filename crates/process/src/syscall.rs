//! The calls that need `unsafe`: forking, and what a forked process does to itself; the end of a child; memory shared with it.
#![allow(unsafe_code)]

use std::ffi::{c_long, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::guard::Slot;
use crate::spawn::ThpSwitch;

/// `linux/prctl.h`, not in libc yet: memory that was advised keeps its huge pages (Linux 6.18).
const PR_THP_DISABLE_EXCEPT_ADVISED: c_ulong = 1 << 1;

/// Gives the id of a copy of this process that runs `life` with all signals blocked, and ends with it.
pub(crate) fn fork(life: impl FnOnce()) -> io::Result<Pid> {
    let blocked = Blocked::all();
    // SAFETY: the copy has this thread only. What it does in `life` takes no lock but malloc's, which the C library's fork
    // leaves usable, and the standard library's on the environment, which this program never changes; and it never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            life();
            // SAFETY: ends the copy at once, without anything that was to be done at this process's end.
            unsafe { libc::_exit(127) }
        }
        pid => {
            drop(blocked);
            Pid::from_raw(pid).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// No signal reaches this thread, or a child that it forks, for as long as this lives.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        // SAFETY: all-zero is a valid set, and both calls only fill in or read the sets of this frame. They fail only for a
        // first argument unlike this one.
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
        // SAFETY: the set is the one that the kernel reported.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// In a forked process: no signal is blocked, as a program expects it.
pub(crate) fn unblock_signals() {
    // SAFETY: all-zero is a valid set, which these calls fill in and read.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// In a forked process: closes all files but one, which becomes number 0.
pub(crate) fn keep_only(file: BorrowedFd<'_>) {
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

/// In a forked process: sets the THP switch of this process and its children.
pub(crate) fn switch_thp(switch: ThpSwitch) -> io::Result<()> {
    let flags = match switch {
        ThpSwitch::Left => return Ok(()),
        ThpSwitch::Off => 0,
        ThpSwitch::ExceptAdvised => PR_THP_DISABLE_EXCEPT_ADVISED,
    };
    let (on, unused): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: the call changes a flag of this process's memory only and takes no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, flags, unused, unused) }.into())
}

/// Binds this thread's memory to the nodes of a mask, or interleaves it over them.
pub(crate) fn bind(nodes: &[u64], interleave: bool) -> io::Result<()> {
    let mode = if interleave {
        libc::MPOL_INTERLEAVE
    } else {
        libc::MPOL_BIND
    };
    let bits = nodes.len() * u64::BITS as usize;
    // SAFETY: the mask outlives the call and is as long as stated; the kernel reads one bit less than stated.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits + 1) })
}

fn checked(result: c_long) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Free slots that this process shares with those that it forks, for as long as any of them lives.
pub(crate) fn shared(count: usize) -> io::Result<&'static [Slot]> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping, at an address of the kernel's choice, overlaps no other.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), count * size_of::<Slot>(), protection, flags) }?;
    // SAFETY: the mapping is as long as so many slots and is never unmapped; a page is aligned for them, and of zeros, which are
    // valid in atomics. Only the atomics change what is in it.
    Ok(unsafe { slice::from_raw_parts(at.cast(), count) })
}

/// Registers what is done when the process ends by itself.
pub(crate) fn at_exit(done: extern "C" fn()) -> io::Result<()> {
    // SAFETY: it is a function of this program, which is never unloaded.
    match unsafe { libc::atexit(done) } {
        0 => Ok(()),
        _ => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

/// How a child ended and what it used, its own children that it waited for included.
pub struct Ended {
    /// Its exit status.
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
    /// Involuntary context switches.
    pub preemptions: u64,
}

/// The exit status of a child, which is left to be waited for.
///
/// # Errors
/// The kernel's; `WouldBlock` if it has not ended.
pub(crate) fn peek(child: Pid) -> io::Result<std::process::ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(child), options)?;
    let status = status.ok_or(io::ErrorKind::WouldBlock)?;
    // As `wait` reports it: a code in the second byte, or a signal in the first.
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
