//! The calls that the KVM libraries lack: KVM's statistics, and how many shadow page tables it keeps.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// `_IO(KVMIO, 0xce)` of linux/kvm.h.
const KVM_GET_STATS_FD: libc::Ioctl = 0xaece;

/// The file with the statistics of a VM or of a virtual CPU.
pub(crate) fn stats_file(kvm: &impl AsRawFd) -> io::Result<File> {
    // SAFETY: this ioctl takes no argument and returns a new file descriptor or -1.
    let fd = unsafe { libc::ioctl(kvm.as_raw_fd(), KVM_GET_STATS_FD, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// `_IO(KVMIO, 0x44)` of linux/kvm.h.
const KVM_SET_NR_MMU_PAGES: libc::Ioctl = 0xae44;

/// Lets a machine keep so many shadow page tables. KVM's own limit follows from the machine's memory (2 % of its pages),
/// and a guest that maps little memory many times needs more. Where KVM refuses, it keeps its limit: slower, not wrong.
pub(crate) fn allow_shadow_tables(vm: &impl AsRawFd, count: u64) {
    const LEAST: u64 = 1024;
    // SAFETY: this ioctl takes a number and touches no memory of ours.
    unsafe { libc::ioctl(vm.as_raw_fd(), KVM_SET_NR_MMU_PAGES, count.max(LEAST)) };
}
