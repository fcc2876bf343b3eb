//! File systems of the kernel's own.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::fstatfs;

/// f_type of file systems whose files are interfaces of the kernel (linux/magic.h): reading `/proc/kmsg` or `trace_pipe` waits
/// for events and takes them from others. Regular files all the same.
const INTERFACES: [i64; 12] = [
    0x9fa0,                 // proc
    0x6265_6572,            // sysfs
    0x6462_6720,            // debugfs
    0x7472_6163,            // tracefs
    0x0027_e0eb,            // cgroup
    0x6367_7270,            // cgroup2
    0x7363_6673,            // securityfs
    0x6265_6570,            // configfs
    0xcafe_4a11_u32 as i64, // bpf
    0xde5e_81e4_u32 as i64, // efivarfs
    0x1980_0202,            // mqueue
    0x1cd1,                 // devpts
];

/// Is it on a file system of the kernel's own?
pub(super) fn is_interface(file: &OwnedFd) -> io::Result<bool> {
    Ok(INTERFACES.contains(&fstatfs(file)?.f_type))
}
