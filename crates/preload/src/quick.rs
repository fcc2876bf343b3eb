//! Decides that a call is not ours to serve, in one cache line and before anything else is read.
//!
//! After a system call under shadow paging, every further page that a hook touches costs a walk: hence one line.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::linux::MAP_FIXED;

#[repr(align(64))]
struct Quick {
    /// Smaller mappings are not served; 0 before it is known whether there are orders.
    minimum: AtomicUsize,
    /// Was a hugetlb page ever given to this process, or to one that it was forked from?
    given: AtomicBool,
}

static QUICK: Quick = Quick {
    minimum: AtomicUsize::new(0),
    given: AtomicBool::new(false),
};

/// From here on it is known which mappings are served: those of this size and more.
pub(crate) fn begin(minimum: usize) {
    QUICK.minimum.store(minimum, Ordering::Release);
}

/// Called before the first hugetlb page is known to the program.
pub(crate) fn give() {
    QUICK.given.store(true, Ordering::Release);
}

/// Can no hugetlb page of ours be in the way of a call?
#[inline(always)]
pub(crate) fn nothing_given() -> bool {
    !QUICK.given.load(Ordering::Acquire)
}

/// Is this mapping too small to be served, and no replacement of what was?
#[inline(always)]
pub(crate) fn is_small(len: usize, flags: c_int) -> bool {
    let replaces = flags & MAP_FIXED != 0 && !nothing_given();
    len < QUICK.minimum.load(Ordering::Acquire) && !replaces
}
