//! `process_madvise`, which the libraries lack.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Advises the kernel on `len` bytes at `at` in the process behind `pidfd`.
pub(crate) fn process_madvise(pidfd: BorrowedFd<'_>, at: u64, len: usize, advice: i32) -> io::Result<()> {
    let piece = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: len,
    };
    // SAFETY: the kernel reads one iovec that outlives the call; its address is one of the other process, never used here.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd.as_raw_fd(),
            &raw const piece,
            1_usize,
            advice,
            0_u32,
        )
    };
    match usize::try_from(done) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(done) if done == len => Ok(()),
        // A part only: the program unmapped the rest.
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
    }
}
