//! The functions that stand in front of the C library's: all of them, and nothing else is exported.

use core::ffi::{c_int, c_void};

use preload_abi::Kind;

use crate::linux::{self, Answer, IPC_CREAT, MADV_HUGEPAGE, Request, SHM_HUGETLB};
use crate::orders::Orders;
use crate::remap::{self, Move};
use crate::{advise, edges, heap, quick, serve, start};

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Finds the orders before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = first_use;

extern "C" fn first_use() {
    let _ = start::orders();
}

/// The orders, for calls that only a hugetlb page given before makes our business.
#[inline(always)]
fn concerned() -> Option<Orders> {
    if quick::nothing_given() { None } else { start::orders() }
}

/// As the C library returns it: all ones, and the reason in `errno`.
fn returned(answer: Answer) -> usize {
    answer.unwrap_or_else(|errno| {
        // SAFETY: the C library's `errno` of this thread.
        unsafe { *__errno_location() = errno.0 };
        usize::MAX
    })
}

fn pointer(answer: Answer) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(returned(answer))
}

fn status(answer: Answer) -> c_int {
    returned(answer) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let request = Request {
        address: address.addr(),
        len,
        prot,
        flags,
        fd,
        offset,
    };
    let orders = if quick::is_small(len, flags) {
        None
    } else {
        start::orders()
    };
    // SAFETY: the program's own call.
    pointer(unsafe {
        match orders {
            Some(orders) => serve::mmap(orders, &request),
            None => linux::mmap(&request),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the program's own call.
    unsafe { mmap(address, len, prot, flags, fd, offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    // SAFETY: the program's own call.
    status(unsafe {
        match concerned() {
            Some(orders) => edges::munmap(orders, address.addr(), len),
            None => linux::munmap(address.addr(), len),
        }
    })
}

/// C declares the last argument as optional; it is read only if the flags say that it is there.
#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_len: usize,
    len: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    let asked = Move {
        old: old.addr(),
        old_len,
        len,
        flags,
        new: new.addr(),
    };
    // SAFETY: the program's own call.
    pointer(unsafe {
        match start::orders() {
            Some(orders) => remap::mremap(orders, asked),
            None => linux::mremap(asked.old, old_len, len, flags, asked.new),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    // SAFETY: the program's own call.
    status(unsafe {
        match concerned() {
            Some(_) => advise::madvise(address.addr(), len, advice),
            None => linux::madvise(address.addr(), len, advice),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, len: usize, prot: c_int) -> c_int {
    // SAFETY: the program's own call.
    status(unsafe {
        match concerned() {
            Some(orders) => edges::mprotect(orders, address.addr(), len, prot),
            None => linux::mprotect(address.addr(), len, prot),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sbrk(increment: isize) -> *mut c_void {
    // SAFETY: the program's own call.
    core::ptr::with_exposed_provenance_mut(unsafe { heap::sbrk(start::orders(), increment) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn brk(end: *mut c_void) -> c_int {
    // SAFETY: the program's own call.
    unsafe { heap::brk(start::orders(), end.addr()) }
}

/// New segments of at least the minimum come from the pool of the default kind.
#[unsafe(no_mangle)]
extern "C" fn shmget(key: c_int, size: usize, flags: c_int) -> c_int {
    let is_new = flags & (IPC_CREAT | SHM_HUGETLB) == IPC_CREAT;
    if let Some(orders) = start::orders().filter(|orders| is_new && size >= orders.minimum())
        && let kind @ (Kind::Pool2M | Kind::Pool1G) = orders.kind()
    {
        let answer = linux::shmget(key, size, flags | SHM_HUGETLB | linux::size_flag(kind));
        orders.tried(kind, size, answer);
        if let Ok(id) = answer {
            return id as c_int;
        }
    }
    status(linux::shmget(key, size, flags))
}

/// Advises a segment to use huge pages, which works where shared memory may (`shmem_enabled`).
#[unsafe(no_mangle)]
unsafe extern "C" fn shmat(id: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    let orders = start::orders();
    // SAFETY: the program's own call.
    let answer = unsafe { linux::shmat(id, address.addr(), flags) };
    if let (Some(orders), Ok(start)) = (orders, answer)
        && orders.kind() == Kind::Thp
        && let Some(len) = linux::segment_len(id).filter(|&len| len >= orders.minimum())
    {
        // SAFETY: says which pages are wanted for memory of the program.
        let answer = unsafe { linux::madvise(start, len, MADV_HUGEPAGE) };
        orders.tried(Kind::Thp, len, answer);
    }
    pointer(answer)
}
