//! The calls that the KVM and system-call libraries lack: KVM's statistics, a signal for one thread, a timer that sends it.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::time::Duration;

/// `_IO(KVMIO, 0xce)` of linux/kvm.h.
const KVM_GET_STATS_FD: libc::Ioctl = 0xaece;

/// The file with the statistics of a VM or of a virtual CPU.
pub(crate) fn stats_file(kvm: &impl AsRawFd) -> io::Result<File> {
    // SAFETY: this ioctl takes no argument and returns a new file descriptor or -1.
    let fd = unsafe { libc::ioctl(kvm.as_raw_fd(), KVM_GET_STATS_FD, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and belongs to nobody else.
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

/// The signal that ends KVM_RUN; real-time, so that no other part of the program uses it by chance.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

extern "C" fn nothing(_: libc::c_int) {}

/// A handler that does nothing, so that the signal interrupts a system call and no more. Dropping it puts back what was there.
pub(crate) struct Handler(libc::sigaction);

impl Handler {
    pub(crate) fn install() -> io::Result<Self> {
        // SAFETY: all-zero is a valid `sigaction`: no flags (so that calls are interrupted), an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let mut before = MaybeUninit::uninit();
        // SAFETY: both point to structures of the right type; the handler does nothing and thus is signal-safe.
        let done = unsafe { libc::sigaction(signal(), &raw const action, before.as_mut_ptr()) };
        check(done)?;
        // SAFETY: the call succeeded and filled it in.
        Ok(Self(unsafe { before.assume_init() }))
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: the structure came from the kernel for this very signal.
        unsafe { libc::sigaction(signal(), &raw const self.0, ptr::null_mut()) };
    }
}

/// A timer that signals the thread that made it, first after `first`, then every `again`.
pub(crate) struct Timer(libc::timer_t);

impl Timer {
    pub(crate) fn new(first: Duration, again: Duration) -> io::Result<Self> {
        unblock()?;
        // SAFETY: all-zero is a valid `sigevent`.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut id = ptr::null_mut();
        // SAFETY: both point to live structures of the right type.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id) })?;
        let timer = Self(id);
        let times = libc::itimerspec {
            it_interval: timespec(again),
            // Zero would mean "never".
            it_value: timespec(first.max(Duration::from_nanos(1))),
        };
        // SAFETY: the timer exists until `timer` is dropped; the old value is not asked for.
        check(unsafe { libc::timer_settime(timer.0, 0, &raw const times, ptr::null_mut()) })?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `new` and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Whoever started this program may have blocked the signal; nobody else uses it, so it may stay unblocked.
fn unblock() -> io::Result<()> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills the set before anything else looks at it; the old mask is not asked for.
    let failed = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
