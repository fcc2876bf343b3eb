//! libhugewise_preload.so: stands in front of a program's memory calls and gives large anonymous regions the ordered page kind.
//!
//! Rules of this library: it never panics, allocates or takes a lock; real calls are system calls made here, so nothing is
//! looked up and no hook can meet itself; `errno` is touched only when the program's own call fails. Without the page named by
//! `HUGEWISE_PRELOAD` every hook passes straight through.
//!
//! What it can see: calls that go through the dynamic linker's tables, that is direct users of `mmap` (programs, Python's
//! arenas, jemalloc and mimalloc as libraries of their own). What it cannot see, tried on glibc 2.36 with a logging
//! hook: glibc's own `malloc`, which calls `__mmap`, `__munmap`, `__madvise`, `__mprotect` and `__sbrk` inside libc.so.6 and passes no
//! table (64 MiB malloc, realloc, free, a thread's arena: no hook ran; the program's own `sbrk` did run one). For those pages glibc has
//! its own switch, `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` (THP) or `=2` (hugetlb), from 2.35. Before that: up to 2.33 the variable
//! `__morecore` redirects heap growth; in 2.34 only a malloc of one's own would do. gperftools' tcmalloc stands in front of `mmap`
//! itself and makes its own system calls (`TCMALLOC_MEMFS_MALLOC_PATH` is its switch), and so does whatever calls `syscall`, as Go does.
//!
//! What it changes for a program with regions smaller than a page of their kind: they lie side by side in chunks of 8 MiB, of which
//! up to one huge page is brought in ahead of use. A region whose address the program asks for is mapped alone.
//!
//! What it changes for a program on hugetlb pages: a page that is cut by `munmap`, `mprotect` or MAP_FIXED gives way to base
//! pages, unless it is in use and the process has several threads, when a copy could lose what another thread writes: then an unmapped
//! part stays mapped until all of its page is unmapped, and the other two fail as the kernel has it. After a fork, a parent that writes needs pages
//! beyond those reserved; from an empty pool the kernel takes the child's, which is then ended by SIGBUS when it looks there.
#![cfg_attr(not(test), no_std)]
#![allow(unsafe_code)]
// The hooks are left out of the unit tests, which would meet themselves.
#![cfg_attr(test, allow(dead_code))]

// A build that unwinds (the workspace's own check and test builds) takes the standard library's handlers; the embedded one aborts.
#[cfg(all(panic = "unwind", not(test)))]
extern crate std;

mod advise;
mod carve;
mod dead;
mod edges;
mod frames;
mod heap;
#[cfg(not(test))]
mod hooks;
mod linux;
mod orders;
mod quick;
mod regions;
mod remap;
mod runs;
mod segments;
mod serve;
mod start;

/// A build from which this text is gone has no path that panics; a test of the embedded library looks for it.
#[cfg(all(panic = "abort", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    static MARK: [u8; 32] = *b"hugewise-preload: can panic here";
    // SAFETY: a volatile read of a live static, so that the text stays in the file for as long as this function does.
    let mark = unsafe { core::ptr::read_volatile(&raw const MARK) };
    linux::exit(i32::from(mark[0]))
}
