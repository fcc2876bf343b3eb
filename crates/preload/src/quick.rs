//! Decides that a call is not ours to serve, in one cache line and before anything else is read.
//!
//! After a system call under shadow paging, every further page that a hook touches costs a walk: hence one line, and no look at whether
//! this is a forked child.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use preload_abi::{Hook, WORDS};

use crate::linux::MAP_FIXED;
use crate::orders::Orders;

#[repr(align(64))]
struct Quick {
    /// The shared page; null without orders, or before they are known.
    page: AtomicPtr<[AtomicU64; WORDS]>,
    /// Smaller mappings are not served; 0 before it is known whether there are orders.
    minimum: AtomicUsize,
    /// Was a hugetlb page ever given to this process, or to one that it was forked from?
    given: AtomicBool,
}

static QUICK: Quick = Quick {
    page: AtomicPtr::new(core::ptr::null_mut()),
    minimum: AtomicUsize::new(0),
    given: AtomicBool::new(false),
};

/// From here on it is known which orders there are.
pub(crate) fn begin(orders: Option<Orders>) {
    if let Some(orders) = orders {
        QUICK
            .page
            .store(core::ptr::from_ref(orders.0).cast_mut(), Ordering::Release);
    }
    let minimum = orders.map_or(usize::MAX, Orders::minimum);
    QUICK.minimum.store(minimum, Ordering::Release);
}

/// The orders, once they are known.
#[inline(always)]
pub(crate) fn orders() -> Option<Orders> {
    // SAFETY: null, or the mapped page, which stays for as long as the process.
    unsafe { QUICK.page.load(Ordering::Acquire).as_ref() }.map(Orders)
}

/// Called before the first hugetlb page is known to the program.
pub(crate) fn give() {
    QUICK.given.store(true, Ordering::Release);
}

/// Can no hugetlb page of ours be in the way of a call? Then the call is counted.
#[inline(always)]
pub(crate) fn nothing_given(hook: Hook) -> bool {
    let nothing = !QUICK.given.load(Ordering::Acquire);
    if nothing {
        count(hook);
    }
    nothing
}

/// Is this mapping too small to be served, and no replacement of what was? Then it is counted.
#[inline(always)]
pub(crate) fn is_small(len: usize, flags: c_int) -> bool {
    let replaces = flags & MAP_FIXED != 0 && QUICK.given.load(Ordering::Acquire);
    let small = len < QUICK.minimum.load(Ordering::Acquire) && !replaces;
    if small {
        count(Hook::Mmap);
    }
    small
}

#[inline(always)]
fn count(hook: Hook) {
    if let Some(orders) = orders() {
        orders.called(hook);
    }
}
