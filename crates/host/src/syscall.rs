//! System calls that the libraries lack: PAGEMAP_SCAN, an ioctl of /proc/PID/pagemap (Linux 6.7 and later), setfsuid, and a copy of this process.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::Gid;
use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::process::Pid;

/// The user and the groups that decide which files may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// As long as this lives, a process of one thread opens files with the rights of another user, if it has more than those. Only those for
/// files change (setfsuid, setfsgid, setgroups): the user gains no power over this process.
pub(crate) struct Taken(Option<Rights>);

impl Taken {
    /// # Errors
    /// In words, if the rights cannot be given up.
    pub(crate) fn take(rights: &Rights) -> Result<Self, String> {
        let own = rustix::process::geteuid();
        if rights.uid == own.as_raw() || !own.is_root() {
            return Ok(Self(None));
        }
        let groups = rustix::process::getgroups().map_err(|error| error.to_string())?;
        let before = Rights {
            uid: own.as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        };
        let taken = Self(Some(before));
        rights.hold()?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(|before| before.hold().is_err()) {
            // With the rights of neither it answers nothing more.
            std::process::abort();
        }
    }
}

impl Rights {
    fn hold(&self) -> Result<(), String> {
        let groups: Vec<Gid> = self.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
        let refused = |what: &str| format!("{what} of user {} could not be taken", self.uid);
        rustix::thread::set_thread_groups(&groups).map_err(|_| refused("the groups"))?;
        // SAFETY: both calls take a number and touch no memory; glibc and musl make them for the calling thread alone. An invalid
        // number changes nothing and returns what holds.
        let (gid, uid) = unsafe {
            libc::setfsgid(self.gid);
            libc::setfsuid(self.uid);
            (libc::setfsgid(u32::MAX), libc::setfsuid(u32::MAX))
        };
        match (u32::try_from(gid), u32::try_from(uid)) {
            (Ok(gid), Ok(uid)) if gid == self.gid && uid == self.uid => Ok(()),
            _ => Err(refused("the rights")),
        }
    }
}

/// Gives the id of a copy of this process that runs `life` with all signals blocked, and ends with it.
///
/// # Errors
/// The kernel's.
pub fn fork(life: impl FnOnce()) -> std::io::Result<Pid> {
    let blocked = Blocked::all();
    // SAFETY: the copy has this thread only. What it does in `life` takes no lock but malloc's, which the C library's fork
    // leaves usable, and the standard library's on the environment, which this program never changes; and it never returns.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            life();
            // SAFETY: ends the copy at once, without anything that was to be done at this process's end.
            unsafe { libc::_exit(127) }
        }
        pid => {
            drop(blocked);
            Pid::from_raw(pid).ok_or_else(std::io::Error::last_os_error)
        }
    }
}

/// In a forked process: closes all files but one, which becomes number 0.
pub fn keep_only(file: BorrowedFd<'_>) {
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
pub fn only_file() -> BorrowedFd<'static> {
    // SAFETY: it is open until the process ends.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// No signal reaches this thread, or a child that it forks, for as long as this lives.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    #[must_use]
    pub fn all() -> Self {
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
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// A page that is in memory.
const PAGE_IS_PRESENT: u64 = 1 << 3;
/// The kernel's shared page of zeros: mapped, but no process's memory.
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// Mapped by an entry above the last level: PMD-mapped transparent, or hugetlb.
const PAGE_IS_HUGE: u64 = 1 << 6;

/// A run of adjacent pages of the same categories, as the kernel writes it (`struct page_region`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

impl PageRegion {
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Is it mapped by large entries?
    pub(crate) fn is_huge(&self) -> bool {
        self.categories & PAGE_IS_HUGE != 0
    }
}

/// Which pages a scan returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All that are in memory, but for the kernel's shared page of zeros.
    Present,
    /// Only those of them that are mapped by large entries.
    Huge,
    /// All that are mapped, the page of zeros too.
    Mapped,
}

impl Wanted {
    /// The categories that a page must have, and those of them whose absence counts instead.
    fn categories(self) -> (u64, u64) {
        match self {
            Self::Present => (PAGE_IS_PRESENT | PAGE_IS_PFNZERO, PAGE_IS_PFNZERO),
            Self::Huge => (PAGE_IS_PRESENT | PAGE_IS_HUGE | PAGE_IS_PFNZERO, PAGE_IS_PFNZERO),
            Self::Mapped => (PAGE_IS_PRESENT, 0),
        }
    }
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// How far a scan came.
pub(crate) struct Scanned {
    /// How many regions were filled in.
    pub(crate) regions: usize,
    /// The address at which to go on; the end of the range when all of it was scanned.
    pub(crate) reached: u64,
}

/// Scans a page-aligned range for pages in memory; adjacent pages of the same categories share a region.
/// Stops early when `regions` is full. Fails with NOTTY on kernels without the call.
pub(crate) fn scan_pages(
    pagemap: &File,
    range: Range<u64>,
    wanted: Wanted,
    regions: &mut [PageRegion],
) -> io::Result<Scanned> {
    let (category_mask, category_inverted) = wanted.categories();
    let arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        start: range.start,
        end: range.end,
        vec: regions.as_mut_ptr().expose_provenance() as u64,
        vec_len: regions.len() as u64,
        category_inverted,
        category_mask,
        return_mask: PAGE_IS_HUGE,
        ..ScanArg::default()
    };
    // SAFETY: the call writes `walk_end` in `arg` and at most `vec_len` regions behind `vec`, which is the caller's
    // exclusive slice; both outlive the call. Asked without write-protect flags it changes no mapping.
    unsafe { ioctl(pagemap, PagemapScan(arg)) }
}

struct PagemapScan(ScanArg);

// SAFETY: the opcode is _IOWR('f', 16, struct pm_scan_arg), and the pointer is to a whole `pm_scan_arg`.
unsafe impl Ioctl for PagemapScan {
    type Output = Scanned;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<ScanArg>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, arg: *mut c_void) -> io::Result<Scanned> {
        // SAFETY: `arg` is the pointer that `as_ptr` gave, still alive.
        let reached = unsafe { (*arg.cast::<ScanArg>()).walk_end };
        Ok(Scanned {
            regions: out as usize,
            reached,
        })
    }
}
