//! `brk` and `sbrk` as programs and older allocators call them: the kernel's heap as ever, advised to use huge pages.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use preload_abi::Kind;

use crate::linux::{self, MADV_HUGEPAGE};
use crate::orders::Orders;

#[link(name = "c")]
unsafe extern "C" {
    /// The C library's own, under the name that it exports beside `sbrk`.
    fn __sbrk(increment: isize) -> *mut c_void;
}

/// What `__sbrk` gives when it fails.
const FAILED: usize = usize::MAX;

/// Up to where the heap was advised; 0 before the first growth.
static ADVISED: AtomicUsize = AtomicUsize::new(0);

/// `sbrk`: the end of the heap as it was, or all ones with `errno` set by the C library.
///
/// # Safety
/// As for `sbrk`.
pub(crate) unsafe fn sbrk(orders: Option<Orders>, increment: isize) -> usize {
    // SAFETY: passed on to the caller.
    let before = unsafe { __sbrk(increment) }.addr();
    if let (Some(orders), true) = (orders, before != FAILED && increment > 0) {
        grown(orders, before, before.wrapping_add_signed(increment));
    }
    before
}

/// `brk`: 0, or -1 with `errno` set by the C library.
///
/// # Safety
/// As for `brk`.
pub(crate) unsafe fn brk(orders: Option<Orders>, end: usize) -> c_int {
    // SAFETY: passed on to the caller.
    let moved = unsafe {
        let now = __sbrk(0).addr();
        now != FAILED && sbrk(orders, end.wrapping_sub(now).cast_signed()) != FAILED
    };
    if moved { 0 } else { -1 }
}

/// The heap cannot be put on hugetlb pages, since glibc's own `malloc` moves its end behind our back; advice it can take. Growth comes
/// in small steps, so it is advised once enough of it has come together.
fn grown(orders: Orders, before: usize, end: usize) {
    let page = linux::BASE_PAGE;
    // A heap that shrank and grew again lies behind what was advised.
    let from = match ADVISED.load(Ordering::Relaxed) {
        advised if (1..=before).contains(&advised) => advised,
        _ => before,
    };
    ADVISED.store(from, Ordering::Relaxed);
    let start = from & !(page - 1);
    let len = end.saturating_sub(start) & !(page - 1);
    if len < orders.minimum() {
        return;
    }
    ADVISED.store(start + len, Ordering::Relaxed);
    if orders.kind() == Kind::Thp {
        // SAFETY: says which pages are wanted for memory of the program's heap.
        let answer = unsafe { linux::madvise(start, len, MADV_HUGEPAGE) };
        orders.tried(Kind::Thp, len, answer);
    }
}
