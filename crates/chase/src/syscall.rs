//! The few system calls the libraries lack or that need raw pointers, each wrapped once.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// A mapping that is unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory owned by one value; nothing about it is tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes of private memory, readable and writable, on base pages whatever the machine's default is.
    ///
    /// # Errors
    /// The kernel's.
    pub fn on_base_pages(len: usize) -> io::Result<Self> {
        let mapping = Self::anonymous(len, MapFlags::empty())?;
        // Refused only by kernels without THP, which is as good.
        let _ = mapping.advise(0, len, Advice::LinuxNoHugepage);
        Ok(mapping)
    }

    /// Maps `len` bytes of private memory, readable and writable, with extra `mmap` flags, none of which sets its address.
    pub(crate) fn anonymous(len: usize, extra: MapFlags) -> io::Result<Self> {
        Self::protected(len, ProtFlags::READ | ProtFlags::WRITE, extra)
    }

    /// The same with these rights alone.
    pub(crate) fn protected(len: usize, rights: ProtFlags, extra: MapFlags) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, rights, MapFlags::PRIVATE | extra)? };
        Self::at(start.cast(), len)
    }

    /// Maps the first `len` bytes of a file for reading.
    pub(crate) fn of_file(file: impl AsFd, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Self::at(start.cast(), len)
    }

    fn at(start: *mut u8, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// First byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.len
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "beyond the mapping"
        );
    }

    /// `madvise` on a part of the mapping, with advice that keeps it mapped.
    pub(crate) fn advise(&self, offset: usize, len: usize, advice: Advice) -> io::Result<()> {
        self.check(offset, len);
        // SAFETY: the range lies in a mapping we own; what advice drops comes back as zeros or from the file.
        unsafe { rustix::mm::madvise(self.start().add(offset).cast(), len, advice)? };
        Ok(())
    }

    /// Pins a part of the mapping in memory.
    pub(crate) fn lock(&self, offset: usize, len: usize) -> io::Result<()> {
        self.check(offset, len);
        // SAFETY: the range lies in a mapping we own.
        unsafe { rustix::mm::mlock(self.start().add(offset).cast(), len)? };
        Ok(())
    }

    /// Writes a zero to the first byte of every `step` bytes: brings pages in on kernels without MADV_POPULATE_WRITE. The mapping is writable.
    pub(crate) fn touch(&mut self, offset: usize, len: usize, step: usize) {
        self.check(offset, len);
        for at in (offset..offset + len).step_by(step) {
            // SAFETY: inside a writable mapping we own and borrow mutably.
            unsafe { self.start().add(at).write_volatile(0) };
        }
    }

    /// Binds a part of the mapping to one NUMA node (`mbind`, MPOL_BIND).
    pub(crate) fn bind(&self, offset: usize, len: usize, node: u32) -> io::Result<()> {
        self.check(offset, len);
        const BITS: usize = u64::BITS as usize;
        let mut mask = [0u64; 16];
        let word = mask.get_mut(node as usize / BITS).ok_or(io::ErrorKind::InvalidInput)?;
        *word = 1 << (node as usize % BITS);
        // SAFETY: the range lies in a mapping we own; the mask outlives the call and is as long as stated.
        checked(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start().add(offset),
                len,
                libc::MPOL_BIND,
                mask.as_ptr(),
                mask.len() * BITS,
                0,
            )
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: we own the mapping, and nothing borrowed from it outlives this value. Failure can only mean that it is
        // gone already.
        let _ = unsafe { rustix::mm::munmap(self.start().cast(), self.len) };
    }
}

/// The answer of a call that gives zero unless it fails.
pub(crate) fn checked(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Involuntary context switches of the calling thread so far.
pub fn involuntary_switches() -> u64 {
    usage(libc::RUSAGE_THREAD).ru_nivcsw.cast_unsigned()
}

/// What the kernel counts of this thread, or of children that were waited for.
pub(crate) fn usage(of: libc::c_int) -> libc::rusage {
    // SAFETY: all-zero is a valid rusage, and the call only fills it in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &raw mut usage);
        usage
    }
}

/// A page of code that can be called.
#[cfg(test)]
pub(crate) struct Code(Mapping);

#[cfg(test)]
impl Code {
    pub(crate) fn start(&self) -> *const u8 {
        self.0.start()
    }
}

/// Copies code to a page of its own and makes it executable.
#[cfg(test)]
pub(crate) fn executable_copy(code: &[u8]) -> io::Result<Code> {
    let page = Mapping::anonymous(code.len().next_multiple_of(4096), MapFlags::empty())?;
    // SAFETY: the page is ours, writable and long enough; afterwards it is only read and run.
    unsafe {
        std::ptr::copy_nonoverlapping(code.as_ptr(), page.start(), code.len());
        rustix::mm::mprotect(
            page.start().cast(),
            page.len,
            rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::EXEC,
        )?;
    }
    Ok(Code(page))
}
