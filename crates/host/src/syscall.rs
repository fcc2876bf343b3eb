//! System calls that the libraries lack: PAGEMAP_SCAN, an ioctl of /proc/PID/pagemap (Linux 6.7 and later), and setfsuid.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;

use rustix::fs::Gid;
use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The user and the groups that decide which files may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// From here on this thread opens files with the rights of another user, if it has more than those now. Only those for files
/// change (setfsuid, setfsgid, setgroups): the user gains no power over this process, and other threads keep theirs. They do not
/// come back, so the thread should end.
///
/// # Errors
/// In words, if the rights cannot be given up.
pub(crate) fn take_rights(rights: &Rights) -> Result<(), String> {
    let own = rustix::process::geteuid();
    if rights.uid == own.as_raw() || !own.is_root() {
        return Ok(());
    }
    let groups: Vec<Gid> = rights.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    let refused = |what: &str| format!("{what} of user {} could not be taken", rights.uid);
    rustix::thread::set_thread_groups(&groups).map_err(|_| refused("the groups"))?;
    // SAFETY: both calls take a number and touch no memory; glibc and musl make them for the calling thread alone. An invalid
    // number changes nothing and returns what holds.
    let (gid, uid) = unsafe {
        libc::setfsgid(rights.gid);
        libc::setfsuid(rights.uid);
        (libc::setfsgid(u32::MAX), libc::setfsuid(u32::MAX))
    };
    match (u32::try_from(gid), u32::try_from(uid)) {
        (Ok(gid), Ok(uid)) if gid == rights.gid && uid == rights.uid => Ok(()),
        _ => Err(refused("the rights")),
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
    /// Its addresses.
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
