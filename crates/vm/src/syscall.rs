//! The calls that the KVM libraries lack: KVM's statistics, how many shadow page tables it keeps, and the levels of the host's own.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

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

/// Does this kernel run with page tables of five levels? It then maps above 47 bits where it is asked to, and otherwise below.
pub(crate) fn host_has_five_levels() -> bool {
    const ABOVE: usize = 1 << 48;
    const LEN: usize = 4096;
    let hint = std::ptr::without_provenance_mut(ABOVE);
    // SAFETY: a new private mapping, for which the address is no more than a hint, touches nothing that exists.
    let Ok(start) = (unsafe { mmap_anonymous(hint, LEN, ProtFlags::empty(), MapFlags::PRIVATE) }) else {
        return false;
    };
    // SAFETY: it was mapped above, and nothing refers to it.
    let _ = unsafe { munmap(start, LEN) };
    start.addr() >= ABOVE
}

#[cfg(test)]
mod tests {
    use super::host_has_five_levels;

    #[test]
    fn levels_are_those_that_the_kernel_lists_among_the_features_in_use() {
        let listed = std::fs::read_to_string("/proc/cpuinfo").expect("readable");
        let flags = listed
            .lines()
            .find(|line| line.starts_with("flags"))
            .expect("on x86-64");
        assert_eq!(host_has_five_levels(), flags.split(' ').any(|flag| flag == "la57"));
    }
}
