//! System calls and constants of Linux, from its uapi headers (asm/unistd.h, asm-generic/mman.h, linux/shm.h).

use core::arch::asm;
use core::ffi::c_int;
use core::ops::Range;

use preload_abi::Kind;

pub(crate) const BASE_PAGE: usize = Kind::Base.page();

pub(crate) const PROT_RW: c_int = 3;

pub(crate) const MAP_SHARED: c_int = 0x01;
pub(crate) const MAP_PRIVATE: c_int = 0x02;
pub(crate) const MAP_FIXED: c_int = 0x10;
pub(crate) const MAP_ANONYMOUS: c_int = 0x20;
pub(crate) const MAP_32BIT: c_int = 0x40;
pub(crate) const MAP_GROWSDOWN: c_int = 0x0100;
pub(crate) const MAP_LOCKED: c_int = 0x2000;
pub(crate) const MAP_NORESERVE: c_int = 0x4000;
pub(crate) const MAP_POPULATE: c_int = 0x8000;
pub(crate) const MAP_STACK: c_int = 0x2_0000;
pub(crate) const MAP_HUGETLB: c_int = 0x4_0000;
pub(crate) const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;

pub(crate) const MREMAP_MAYMOVE: c_int = 1;
pub(crate) const MREMAP_FIXED: c_int = 2;
pub(crate) const MREMAP_DONTUNMAP: c_int = 4;

pub(crate) const MADV_NORMAL: c_int = 0;
pub(crate) const MADV_WILLNEED: c_int = 3;
pub(crate) const MADV_DONTNEED: c_int = 4;
pub(crate) const MADV_FREE: c_int = 8;
pub(crate) const MADV_MERGEABLE: c_int = 12;
pub(crate) const MADV_DODUMP: c_int = 17;
pub(crate) const MADV_HUGEPAGE: c_int = 14;
pub(crate) const MADV_NOHUGEPAGE: c_int = 15;
pub(crate) const MADV_COLD: c_int = 20;
pub(crate) const MADV_PAGEOUT: c_int = 21;
pub(crate) const MADV_POPULATE_WRITE: c_int = 23;
pub(crate) const MADV_DONTNEED_LOCKED: c_int = 24;
pub(crate) const MADV_COLLAPSE: c_int = 25;

pub(crate) const IPC_CREAT: c_int = 0o1000;
pub(crate) const IPC_STAT: usize = 2;
pub(crate) const SHM_HUGETLB: c_int = 0o4000;

pub(crate) const ENOMEM: Errno = Errno(12);
pub(crate) const EFAULT: Errno = Errno(14);
pub(crate) const EINVAL: Errno = Errno(22);

mod number {
    pub(super) const CLOSE: usize = 3;
    pub(super) const FSTAT: usize = 5;
    pub(super) const MMAP: usize = 9;
    pub(super) const MPROTECT: usize = 10;
    pub(super) const MUNMAP: usize = 11;
    pub(super) const MREMAP: usize = 25;
    pub(super) const MINCORE: usize = 27;
    pub(super) const MADVISE: usize = 28;
    pub(super) const SHMGET: usize = 29;
    pub(super) const SHMAT: usize = 30;
    pub(super) const SHMCTL: usize = 31;
    pub(super) const EXIT_GROUP: usize = 231;
    pub(super) const OPENAT: usize = 257;
    pub(super) const NEWFSTATAT: usize = 262;
}

/// An error number of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// What a system call gave.
pub(crate) type Answer = Result<usize, Errno>;

/// One system call.
///
/// # Safety
/// As for the call itself with these arguments.
unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> Answer {
    let result: usize;
    // SAFETY: the kernel's calling convention on x86-64: it changes rax, rcx and r11 only; what the call does to memory is the
    // caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer(result)
}

/// The last 4095 addresses are error numbers.
fn answer(result: usize) -> Answer {
    let signed = result.cast_signed();
    if (-4095..0).contains(&signed) {
        Err(Errno(-(signed as i32)))
    } else {
        Ok(result)
    }
}

/// An argument of C's `int`, as the kernel takes it.
pub(crate) const fn int(value: c_int) -> usize {
    (value as isize).cast_unsigned()
}

/// What was asked of `mmap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) address: usize,
    pub(crate) len: usize,
    pub(crate) prot: c_int,
    pub(crate) flags: c_int,
    pub(crate) fd: c_int,
    pub(crate) offset: i64,
}

impl Request {
    /// Anonymous private memory for reading and writing, anywhere.
    pub(crate) const fn anonymous(len: usize) -> Self {
        Self {
            address: 0,
            len,
            prot: PROT_RW,
            flags: MAP_PRIVATE | MAP_ANONYMOUS,
            fd: -1,
            offset: 0,
        }
    }
}

/// The size of a page in the flags of `mmap` and `shmget`: its binary logarithm, from bit 26 on.
pub(crate) const fn size_flag(kind: Kind) -> c_int {
    (kind.page().trailing_zeros() << 26).cast_signed()
}

/// `mmap`.
///
/// # Safety
/// With MAP_FIXED, the range must be the caller's to replace.
pub(crate) unsafe fn mmap(request: &Request) -> Answer {
    let Request {
        address,
        len,
        prot,
        flags,
        fd,
        offset,
    } = *request;
    let offset = (offset as isize).cast_unsigned();
    // SAFETY: passed on to the caller.
    unsafe { call(number::MMAP, [address, len, int(prot), int(flags), int(fd), offset]) }
}

/// `munmap`.
///
/// # Safety
/// The range must be the caller's to unmap.
pub(crate) unsafe fn munmap(address: usize, len: usize) -> Answer {
    // SAFETY: passed on to the caller.
    unsafe { call(number::MUNMAP, [address, len, 0, 0, 0, 0]) }
}

/// `mremap`.
///
/// # Safety
/// Both ranges must be the caller's.
pub(crate) unsafe fn mremap(old: usize, old_len: usize, len: usize, flags: c_int, new: usize) -> Answer {
    // SAFETY: passed on to the caller.
    unsafe { call(number::MREMAP, [old, old_len, len, int(flags), new, 0]) }
}

/// `madvise`.
///
/// # Safety
/// The range must be the caller's, if the advice changes what it holds.
pub(crate) unsafe fn madvise(address: usize, len: usize, advice: c_int) -> Answer {
    // SAFETY: passed on to the caller.
    unsafe { call(number::MADVISE, [address, len, int(advice), 0, 0, 0]) }
}

/// `mprotect`.
///
/// # Safety
/// The range must be the caller's.
pub(crate) unsafe fn mprotect(address: usize, len: usize, prot: c_int) -> Answer {
    // SAFETY: passed on to the caller.
    unsafe { call(number::MPROTECT, [address, len, int(prot), 0, 0, 0]) }
}

/// Is the page at this address, which must be page-aligned, in memory?
pub(crate) fn is_present(address: usize) -> bool {
    let mut present = 0_u8;
    // SAFETY: asks about one page, so one byte is written, to a local.
    let answer = unsafe { call(number::MINCORE, [address, 1, (&raw mut present).addr(), 0, 0, 0]) };
    // Whatever cannot be asked about may well hold something.
    answer.is_err() || present & 1 == 1
}

/// `shmget`.
pub(crate) fn shmget(key: c_int, size: usize, flags: c_int) -> Answer {
    // SAFETY: makes or finds a segment; no memory of this process changes.
    unsafe { call(number::SHMGET, [int(key), size, int(flags), 0, 0, 0]) }
}

/// `shmat`.
///
/// # Safety
/// With SHM_REMAP, the range must be the caller's to replace.
pub(crate) unsafe fn shmat(id: c_int, address: usize, flags: c_int) -> Answer {
    // SAFETY: passed on to the caller.
    unsafe { call(number::SHMAT, [int(id), address, int(flags), 0, 0, 0]) }
}

/// The length of a shared segment.
pub(crate) fn segment_len(id: c_int) -> Option<usize> {
    // `struct shmid64_ds` is 112 bytes on both architectures, its length is the word after the 48 bytes of `ipc64_perm`.
    let mut words = [0_usize; 32];
    // SAFETY: the structure is shorter than the local that it is written to.
    unsafe { call(number::SHMCTL, [int(id), IPC_STAT, words.as_mut_ptr().addr(), 0, 0, 0]) }.ok()?;
    words.get(6).copied()
}

/// Opens a file, named by a text that ends with a zero, for reading and writing.
pub(crate) fn open(path: &[u8]) -> Option<c_int> {
    const AT_FDCWD: c_int = -100;
    const O_RDWR: c_int = 2;
    const O_CLOEXEC: c_int = 0o2_000_000;
    if path.last() != Some(&0) {
        return None;
    }
    // SAFETY: the text ends with a zero and outlives the call.
    let fd = unsafe {
        call(
            number::OPENAT,
            [int(AT_FDCWD), path.as_ptr().addr(), int(O_RDWR | O_CLOEXEC), 0, 0, 0],
        )
    };
    fd.ok().and_then(|fd| c_int::try_from(fd).ok())
}

/// Closes what [`open`] opened.
pub(crate) fn close(fd: c_int) {
    // SAFETY: the descriptor is ours.
    let _ = unsafe { call(number::CLOSE, [int(fd), 0, 0, 0, 0, 0]) };
}

/// `struct stat` is 144 bytes long, its length stands at byte 48.
const STAT_WORDS: usize = 32;

/// The length of an open file.
pub(crate) fn file_len(fd: c_int) -> Option<u64> {
    let mut words = [0_u64; STAT_WORDS];
    // SAFETY: the structure is shorter than the local that it is written to.
    unsafe { call(number::FSTAT, [int(fd), words.as_mut_ptr().addr(), 0, 0, 0, 0]) }.ok()?;
    words.get(6).copied()
}

/// Is this the only thread of its process? The kernel gives the directory of threads a link for each, and two more.
pub(crate) fn is_single_threaded() -> bool {
    let path = c"/proc/self/task";
    let mut words = [0_u64; STAT_WORDS];
    // SAFETY: the text ends with a zero; the structure is shorter than the local that it is written to.
    let answer = unsafe {
        call(
            number::NEWFSTATAT,
            [0, path.as_ptr().addr(), words.as_mut_ptr().addr(), 0, 0, 0],
        )
    };
    // The links stand at byte 16.
    answer.is_ok() && words.get(2) == Some(&3)
}

/// Ends the process.
#[cfg_attr(any(panic = "unwind", test), allow(dead_code))]
pub(crate) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { call(number::EXIT_GROUP, [int(code), 0, 0, 0, 0, 0]) };
    }
}

/// Copies memory.
///
/// # Safety
/// Both ranges must be the caller's, and apart from each other.
pub(crate) unsafe fn copy(from: usize, to: usize, len: usize) {
    let (from, to) = (
        core::ptr::with_exposed_provenance(from),
        core::ptr::with_exposed_provenance_mut(to),
    );
    // SAFETY: passed on to the caller.
    unsafe { core::ptr::copy_nonoverlapping::<u8>(from, to, len) }
}

/// The next multiple of a power of two.
pub(crate) const fn round_up(value: usize, power: usize) -> usize {
    let last = power.wrapping_sub(1);
    value.wrapping_add(last) & !last
}

/// A range from an address and a length rounded up to pages; nothing if it does not fit into the address space.
pub(crate) fn pages(address: usize, len: usize) -> Option<Range<usize>> {
    let len = round_up(len.checked_add(BASE_PAGE)?.wrapping_sub(BASE_PAGE), BASE_PAGE);
    Some(address..address.checked_add(len)?)
}
