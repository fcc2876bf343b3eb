//! Whether standard output was closed when the program began, asked before the standard library opens something in its place.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls each function of this section once, before `main` and its threads. This one makes one system call
// and stores its outcome; it needs nothing of the standard library that `main` prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: no file is used through it; the call only asks whether the number stands for one.
    let stdout = unsafe { BorrowedFd::borrow_raw(1) };
    if rustix::io::fcntl_getfd(stdout).is_err() {
        WAS_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Was there no standard output?
pub(super) fn was_stdout_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
