//! A filter of system calls, as containers have them.
#![allow(unsafe_code)]

use std::io;

/// From here on, `clone3` is unknown to this thread and all that descends from it.
pub(crate) fn refuse_clone3() -> io::Result<()> {
    const NUMBER: u32 = 0;
    let step = |code: u32, skipped: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: skipped,
        k,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, NUMBER),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_clone3 as u32),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the calls bind this thread only; the program and its filter outlive the call that reads them.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}
