//! The calls that need `unsafe`: making a process, and what it does to itself; the end of a child; memory shared with it.
#![allow(unsafe_code)]

use std::arch::asm;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicI32, AtomicU64};

use host::copy::Blocked;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::cgroup::Cgroup;
use crate::ended::{Counts, Cpu, Ended};

/// `linux/prctl.h`, not in libc yet: memory that was advised keeps its huge pages (Linux 6.18).
const PR_THP_DISABLE_EXCEPT_ADVISED: c_ulong = 1 << 1;
/// Bytes of a child's stack; the C library gives the children of its `posix_spawn` half as much.
const STACK: usize = 64 << 10;

/// The stack of one child after the other: as much memory for each would be asked for and given back by malloc.
pub(crate) struct Stack(Box<[MaybeUninit<u128>]>);

impl Stack {
    pub(crate) fn new() -> Self {
        Self(Box::new_uninit_slice(STACK / size_of::<u128>()))
    }
}

/// The child has the memory and the files of this process, and this thread waits for it, and has a handle of it (Linux 5.2).
const SHARED: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_PIDFD;
/// `linux/sched.h` (Linux 5.7); libc's constant of that name has lost this bit.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Gives the id and a handle of a child that runs `life` in the memory and with the files of this process, all signals blocked, while this thread
/// waits until the child has executed a program or `life` is over. A copy of this process would take longer than a short program.
/// What `life` takes of memory and does not leave to this thread is never given back. Is there no process that may be started in the
/// cgroup, it is none.
pub(crate) fn vfork(
    stack: &mut Stack,
    mut life: &mut dyn FnMut(),
    cgroup: &mut Option<Cgroup>,
) -> io::Result<(Pid, OwnedFd)> {
    let stack = &mut *stack.0;
    let argument: *mut c_void = (&raw mut life).cast();
    let blocked = Blocked::all();
    let mut handle: c_int = -1;
    // SAFETY: the child has the stack and `life` to itself, as this thread goes on only once the child has left both. To malloc and to
    // all locks it is this thread, which none of them can tell from the child; no handler of a signal runs in it.
    let into = |cgroup: &Cgroup| unsafe { clone_into(cgroup.handle(), stack, argument, &mut handle) }.ok();
    let mut pid = cgroup.as_ref().and_then(into);
    if pid.is_none() {
        // SAFETY: likewise; the kernel writes a descriptor where the last argument points to.
        let number = unsafe {
            libc::clone(
                run,
                stack.as_mut_ptr_range().end.cast(),
                SHARED | libc::SIGCHLD,
                argument,
                &raw mut handle,
            )
        };
        pid = Pid::from_raw(number.max(0));
        pid.and(cgroup.take()).into_iter().for_each(Cgroup::give_up);
    }
    let pid = pid.ok_or_else(io::Error::last_os_error);
    drop(blocked);
    let pid = pid?;
    if handle < 0 {
        // Before Linux 5.2: fails only for one that has ended.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        let _ = wait(pid);
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: the kernel opened it for this call, and nothing else knows of it.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(handle) }))
}

/// `clone3`, which has no wrapper in the C library: only by it a process starts in a cgroup. Moving there takes 12 ms, as the kernel waits
/// for all CPUs.
///
/// # Safety
/// The stack, and what the argument points to, are the child's alone until this returns, and [`run`] may run in it.
unsafe fn clone_into(
    cgroup: BorrowedFd<'_>,
    stack: &mut [MaybeUninit<u128>],
    argument: *mut c_void,
    handle: &mut c_int,
) -> Result<Pid, Errno> {
    let arguments = libc::clone_args {
        flags: CLONE_INTO_CGROUP | u64::from(SHARED.cast_unsigned()),
        pidfd: (&raw mut *handle).expose_provenance() as u64,
        exit_signal: libc::SIGCHLD.cast_unsigned().into(),
        stack: stack.as_mut_ptr().expose_provenance() as u64,
        stack_size: size_of_val(stack) as u64,
        cgroup: cgroup.as_raw_fd().cast_unsigned().into(),
        // SAFETY: all-zero is valid in numbers, and means that nothing else is wanted.
        ..unsafe { std::mem::zeroed() }
    };
    let result: i64;
    // SAFETY: the arguments outlive the call and are as long as stated. The parent comes out behind the call as it went in; the
    // child has the registers of its parent but its own stack, whose end is aligned as calls want it, and ends here.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r8",
            "call r9",
            "mov edi, eax",
            "mov eax, {exit}",
            "syscall",
            "2:",
            exit = const libc::SYS_exit,
            in("rdi") &raw const arguments,
            in("rsi") size_of::<libc::clone_args>(),
            in("r8") argument,
            in("r9") run as extern "C" fn(*mut c_void) -> c_int,
            inlateout("rax") libc::SYS_clone3 => result,
            out("rcx") _,
            out("r11") _,
        );
    }
    let number = result as i32;
    Pid::from_raw(number.max(0)).ok_or_else(|| Errno::from_raw_os_error(-number))
}

/// The child's life, and its exit status if it executed no program.
extern "C" fn run(life: *mut c_void) -> c_int {
    // SAFETY: it is what `vfork` passed.
    let life = unsafe { &mut *life.cast::<&mut dyn FnMut()>() };
    life();
    127
}

/// Texts, and where they are, with a null at the end.
pub(crate) struct Texts {
    _texts: Vec<CString>,
    /// Each points to a text that lives as long as this, and the last is null.
    places: Vec<*const c_char>,
}

impl Texts {
    pub(crate) fn of(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        let texts: Vec<CString> = texts.map(CString::new).collect::<Result<_, _>>()?;
        let places = texts.iter().map(|text| text.as_ptr());
        Ok(Self {
            places: places.chain([ptr::null()]).collect(),
            _texts: texts,
        })
    }
}

/// Becomes the program, or gives why not. What is executable, but of no format that the kernel knows, is a script of the shell.
pub(crate) fn execute(file: &CStr, words: &Texts, variables: &Texts) -> io::Error {
    // SAFETY: both lists end with null, and all that they point to outlives the call.
    unsafe { libc::execvpe(file.as_ptr(), words.places.as_ptr(), variables.places.as_ptr()) };
    io::Error::last_os_error()
}

/// In a child: has a table of files of its own from here on, with these as standard input, output and error.
pub(crate) fn take_files(files: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    // SAFETY: a copy of the table changes nothing for those that use files of it.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    for (number, file) in (0..).zip(files) {
        // SAFETY: the table is the child's own, and nothing uses standard files in it before its program does.
        checked(unsafe { libc::dup2(file.as_raw_fd(), number) }.into())?;
    }
    Ok(())
}

/// In a child: no signal is blocked, and none ignored by the wish of Rust's runtime, as a program expects it.
pub(crate) fn unblock_signals() {
    // SAFETY: all-zero is a valid set, which these calls fill in and read; the table of handlers is the child's own.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// The THP switch of one process and its children (`PR_SET_THP_DISABLE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThpSwitch {
    #[default]
    Left,
    Off,
    /// Off but for advised memory.
    ExceptAdvised,
}

/// The THP switch of this process, which a child has by exec, as long as this lives.
pub(crate) struct Switched {
    before: Option<c_ulong>,
}

impl Switched {
    pub(crate) fn to(switch: ThpSwitch) -> io::Result<Self> {
        let state = match switch {
            ThpSwitch::Left => return Ok(Self { before: None }),
            ThpSwitch::Off => 1,
            ThpSwitch::ExceptAdvised => 1 | PR_THP_DISABLE_EXCEPT_ADVISED,
        };
        let unused: c_ulong = 0;
        // SAFETY: the call takes no pointer.
        let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, unused, unused, unused, unused) };
        checked(before.into())?;
        switch_thp(state)?;
        Ok(Self {
            before: Some(before as c_ulong),
        })
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Fails only in a process that is being killed.
            let _ = switch_thp(before);
        }
    }
}

/// 0 for on; 1 for off, with flags: as the kernel reports it.
fn switch_thp(state: c_ulong) -> io::Result<()> {
    let unused: c_ulong = 0;
    // SAFETY: the call changes a flag of this process's memory only and takes no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, state & 1, state & !1, unused, unused) }.into())
}

/// Binds this thread's memory to the nodes of a mask, or interleaves it over them.
pub(crate) fn bind(nodes: &[u64], interleave: bool) -> io::Result<()> {
    let mode = if interleave {
        libc::MPOL_INTERLEAVE
    } else {
        libc::MPOL_BIND
    };
    let bits = nodes.len() * u64::BITS as usize;
    // SAFETY: the mask outlives the call and is as long as stated; the kernel reads one bit less than stated.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits + 1) })
}

fn checked(result: c_long) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A process or group to end, in memory that the guardian shares: as `kill` takes it, a process, or the group of minus that number.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) target: AtomicI32,
    /// Nanoseconds from boot until it was registered: a process of this id that began later is another one.
    pub(crate) since: AtomicU64,
}

/// Free slots that this process shares with those that it forks, for as long as any of them lives.
pub(crate) fn shared(count: usize) -> io::Result<&'static [Slot]> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping, at an address of the kernel's choice, overlaps no other.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), count * size_of::<Slot>(), protection, flags) }?;
    // SAFETY: the mapping is as long as so many slots and is never unmapped; a page is aligned for them, and of zeros, which are
    // valid in atomics. Only the atomics change what is in it.
    Ok(unsafe { slice::from_raw_parts(at.cast(), count) })
}

/// Registers what is done when the process ends by itself.
pub(crate) fn at_exit(done: extern "C" fn()) -> io::Result<()> {
    // SAFETY: it is a function of this program, which is never unloaded.
    match unsafe { libc::atexit(done) } {
        0 => Ok(()),
        _ => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

/// The most memory that this process ever had in use, in bytes.
pub(crate) fn own_peak() -> u64 {
    // SAFETY: all-zero is a valid rusage, and the call only fills in what it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    usage.ru_maxrss.cast_unsigned() * 1024
}

/// The exit status of a child, which is left to be waited for.
///
/// # Errors
/// The kernel's; `WouldBlock` if it has not ended.
pub(crate) fn peek(child: Pid) -> io::Result<std::process::ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(child), options)?;
    let status = status.ok_or(io::ErrorKind::WouldBlock)?;
    // As `wait` reports it: a code in the second byte, or a signal in the first.
    let code = status
        .exit_status()
        .map(|code| code << 8)
        .or(status.terminating_signal());
    Ok(std::process::ExitStatus::from_raw(code.unwrap_or_default()))
}

/// Waits for the end of a child of this process.
///
/// # Errors
/// The kernel's, if there is no such child.
pub(crate) fn wait(pid: Pid) -> io::Result<Ended> {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, and the call only fills in what it is given.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of this frame.
        let result = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Ended {
        status: std::process::ExitStatus::from_raw(status),
        max_rss: usage.ru_maxrss.cast_unsigned() * 1024,
        cpu: Some(Cpu {
            user: seconds(usage.ru_utime),
            system: seconds(usage.ru_stime),
        }),
        counts: Some(Counts {
            faults: usage.ru_minflt.cast_unsigned(),
            major_faults: usage.ru_majflt.cast_unsigned(),
            waits: usage.ru_nvcsw.cast_unsigned(),
            preemptions: usage.ru_nivcsw.cast_unsigned(),
        }),
    })
}

/// Removes a segment of System V memory, if this user may.
pub(crate) fn remove_segment(id: c_int) {
    // SAFETY: the command takes no buffer, and memory of this process is not touched.
    unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
}
