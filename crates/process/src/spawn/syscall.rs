//! A child in the memory of this process until it executes its program: starting it costs the same however large this one is.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{Child, Failure, Image, NODES, Nodes, Step};
use crate::spawn::ThpSwitch;
use crate::syscall::{Blocked, wait};

/// `linux/prctl.h`, not in libc yet: the switch spares memory that asked for large pages (Linux 6.18).
const PR_THP_DISABLE_EXCEPT_ADVISED: c_ulong = 1 << 1;
/// The last signal whose handler could do harm in a child: of those for real-time programs, this one handles only its alarm's, by
/// doing nothing.
const LAST_SIGNAL: c_int = libc::SIGSYS;

/// In the memory of its parent, which stands still, with its files.
const CLONE_FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
/// `linux/sched.h` (Linux 5.5); libc's constant of that name has lost this bit.
#[cfg(target_arch = "x86_64")]
const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;

/// The child's stack; the C library gives the children of its `posix_spawn` half as much.
struct Stack([u128; 4096]);

/// One child at a time, since what it does to its memory it does to this process's.
static STARTING: Mutex<Stack> = Mutex::new(Stack([0; 4096]));

/// What the child sees.
struct Shared<'a, Open> {
    child: &'a Child<'a, Open>,
    words: Vec<*const c_char>,
    /// The words behind the shell's; the place of the file is left open.
    shell_words: Vec<Cell<*const c_char>>,
    variables: Vec<*const c_char>,
    parent: Pid,
    /// Has the child the parent's handlers of signals?
    has_handlers: Cell<bool>,
    /// Left by the child if it comes to nothing.
    failed: Cell<Option<(Step, Errno)>>,
}

impl<Open: Fn() -> io::Result<OwnedFd>> Child<'_, Open> {
    /// Starts it; the program runs when this returns.
    pub(crate) fn start(&self) -> Result<Pid, Failure> {
        let shared = Shared::of(self);
        let mut stack = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (self.thp != ThpSwitch::Left).then(switch_of_this_process);
        let blocked = Blocked::all();
        let started = clone(&shared, &mut stack);
        if let Some(before) = before {
            // Fails only in a process that is being killed.
            let _ = set_switch(before);
        }
        drop((blocked, stack));
        let pid = started.map_err(|error| Step::Process.failed(error))?;
        match shared.failed.take() {
            None => Ok(pid),
            Some((step, error)) => {
                let _ = wait(pid);
                Err(step.failed(error))
            }
        }
    }
}

fn clone<Open: Fn() -> io::Result<OwnedFd>>(shared: &Shared<'_, Open>, stack: &mut Stack) -> io::Result<Pid> {
    let argument = ptr::from_ref(shared).cast_mut().cast();
    shared.has_handlers.set(false);
    // SAFETY: as below; the child has no handler of a signal from the start.
    match unsafe { clone_without_handlers(run::<Open>, stack, argument) } {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => shared.has_handlers.set(true),
        pid => return pid.map_err(Into::into),
    }
    let flags = CLONE_FLAGS | libc::SIGCHLD;
    let top = stack.0.as_mut_ptr_range().end.cast();
    // SAFETY: this thread stands still until the child has executed its program or ended, so that the child has the stack and
    // what is shared to itself; other threads use neither. No handler of a signal runs in it, as all are blocked until it has
    // none left that does anything.
    let pid = unsafe { libc::clone(run::<Open>, top, flags, argument) };
    Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error)
}

/// `clone3`, which has no wrapper in the C library: it spares the child two system calls for each handler that it clears.
///
/// # Errors
/// `NOSYS` or `INVAL` before Linux 5.5, and `NOSYS` or `PERM` from filters of system calls that do not know it.
///
/// # Safety
/// The stack, and what the argument points to, are the child's alone until this returns, and `life` may run in it.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_without_handlers(
    life: extern "C" fn(*mut c_void) -> c_int,
    stack: &mut Stack,
    argument: *mut c_void,
) -> Result<Pid, Errno> {
    let arguments = libc::clone_args {
        flags: CLONE_CLEAR_SIGHAND | CLONE_FLAGS.cast_unsigned() as u64,
        exit_signal: libc::SIGCHLD.cast_unsigned().into(),
        stack: stack.0.as_mut_ptr().expose_provenance() as u64,
        stack_size: size_of::<Stack>() as u64,
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
            in("r9") life,
            inlateout("rax") libc::SYS_clone3 => result,
            out("rcx") _,
            out("r11") _,
        );
    }
    let number = i32::try_from(result).unwrap_or_default();
    match Pid::from_raw(number.max(0)) {
        Some(pid) => Ok(pid),
        None => Err(Errno::from_raw_os_error(-number)),
    }
}

/// Not tried on other CPUs.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn clone_without_handlers(
    _: extern "C" fn(*mut c_void) -> c_int,
    _: &mut Stack,
    _: *mut c_void,
) -> Result<Pid, Errno> {
    Err(Errno::NOSYS)
}

/// The child's life.
extern "C" fn run<Open: Fn() -> io::Result<OwnedFd>>(shared: *mut c_void) -> c_int {
    // SAFETY: it is what `clone` was given, which its parent's frame keeps.
    let shared = unsafe { &*shared.cast::<Shared<'_, Open>>() };
    shared.failed.set(Some(shared.carry_out()));
    127
}

impl<'a, Open: Fn() -> io::Result<OwnedFd>> Shared<'a, Open> {
    fn of(child: &'a Child<'a, Open>) -> Self {
        let Image {
            words,
            variables,
            shell,
            ..
        } = &child.image;
        let arguments = words.iter().skip(1).map(|word| word.as_ptr());
        let shell_words = [shell.as_ptr(), ptr::null()].into_iter().chain(arguments);
        Self {
            child,
            words: pointers(words.iter().map(CString::as_c_str)),
            shell_words: shell_words.chain([ptr::null()]).map(Cell::new).collect(),
            variables: pointers(variables.iter().map(Cow::as_ref)),
            parent: rustix::process::getpid(),
            has_handlers: Cell::new(true),
            failed: Cell::new(None),
        }
    }

    /// Becomes the program, or gives why not. From here on nothing may take memory, lock or panic.
    fn carry_out(&self) -> (Step, Errno) {
        match self.prepare() {
            Ok(()) => (Step::Program, self.execute()),
            Err(failed) => failed,
        }
    }

    fn prepare(&self) -> Result<(), (Step, Errno)> {
        let at = |step: Step| move |error: Errno| (step, error);
        self.tie().map_err(at(Step::Tie))?;
        rustix::process::setpgid(None, None).map_err(at(Step::Group))?;
        self.child.place.lead();
        self.switch().map_err(at(Step::Switch))?;
        if let Some(cpus) = &self.child.cpus {
            rustix::thread::sched_setaffinity(None, cpus).map_err(at(Step::Cpus))?;
        }
        self.child
            .nodes
            .as_ref()
            .map_or(Ok(()), bind)
            .map_err(at(Step::Nodes))?;
        self.open_counters();
        take_files(self.child.files).map_err(at(Step::Files))?;
        if self.has_handlers.get() {
            forget_handlers();
        }
        let_signals_through();
        Ok(())
    }

    fn tie(&self) -> Result<(), Errno> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the child was tied to it.
        let is_there = rustix::process::getppid() == Some(self.parent);
        is_there.then_some(()).ok_or(Errno::PIPE)
    }

    /// The switch belongs to the memory, which is the parent's, too, and is handed on by exec; so the parent switches back.
    fn switch(&self) -> Result<(), Errno> {
        match self.child.thp {
            ThpSwitch::Left => Ok(()),
            ThpSwitch::Off => set_switch(1),
            ThpSwitch::ExceptAdvised => set_switch(1 | PR_THP_DISABLE_EXCEPT_ADVISED),
        }
    }

    /// Into the table of files that is still the parent's, too. Whatever comes of it, the program runs.
    fn open_counters(&self) {
        for (open, opened) in &self.child.counters {
            match open() {
                Ok(file) => opened.set(Some(file)),
                Err(_) => return,
            }
        }
    }

    /// As `execvp` does it. Comes back only with an error, the one that tells most.
    fn execute(&self) -> Errno {
        let mut why = Errno::NOENT;
        for file in &self.child.image.files {
            match execute(file, &self.words, &self.variables) {
                Errno::NOEXEC => return self.execute_by_shell(file),
                error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if why != Errno::ACCESS => why = error,
                Errno::NOENT | Errno::NOTDIR | Errno::ACCESS => {}
                other => return other,
            }
        }
        why
    }

    fn execute_by_shell(&self, file: &CString) -> Errno {
        if let Some(place) = self.shell_words.get(1) {
            place.set(file.as_ptr());
        }
        // SAFETY: a cell has the layout of what is in it; the list ends with null, and all that it points to outlives the call.
        unsafe {
            libc::execve(
                self.child.image.shell.as_ptr(),
                self.shell_words.as_ptr().cast(),
                self.variables.as_ptr(),
            )
        };
        last()
    }
}

/// With the null behind them that ends a list.
fn pointers<'a>(texts: impl Iterator<Item = &'a CStr>) -> Vec<*const c_char> {
    texts.map(CStr::as_ptr).chain([ptr::null()]).collect()
}

fn execute(file: &CString, words: &[*const c_char], variables: &[*const c_char]) -> Errno {
    // SAFETY: both lists end with null, and all that they point to outlives the call.
    unsafe { libc::execve(file.as_ptr(), words.as_ptr(), variables.as_ptr()) };
    last()
}

fn last() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn checked(result: libc::c_long) -> Result<(), Errno> {
    if result < 0 { Err(last()) } else { Ok(()) }
}

/// What [`set_switch`] would have to be given for nothing to change.
fn switch_of_this_process() -> c_ulong {
    let unused: c_ulong = 0;
    // SAFETY: the call takes no pointer.
    let state = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, unused, unused, unused, unused) };
    c_ulong::try_from(state).unwrap_or_default()
}

/// 0 for on; 1 for off, with flags.
fn set_switch(state: c_ulong) -> Result<(), Errno> {
    let unused: c_ulong = 0;
    // SAFETY: the call changes a flag of this process's memory only and takes no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, state & 1, state & !1, unused, unused) }.into())
}

fn bind(nodes: &Nodes) -> Result<(), Errno> {
    let mode = if nodes.interleave {
        libc::MPOL_INTERLEAVE
    } else {
        libc::MPOL_BIND
    };
    // SAFETY: the mask outlives the call and is as long as stated; the kernel reads one bit less than it is told.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.mask.as_ptr(), NODES + 1) })
}

/// In a table of files of the child's own.
fn take_files(files: [BorrowedFd<'_>; 3]) -> Result<(), Errno> {
    // SAFETY: no file of the table that is left is used by this process any more than by the other.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    for (number, file) in (0..).zip(files) {
        // SAFETY: the table is the child's own, and nobody uses standard files in it before its program does.
        checked(unsafe { libc::dup2(file.as_raw_fd(), number) }.into())?;
    }
    Ok(())
}

/// No handler of the parent's is left.
fn forget_handlers() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: all-zero is a valid action; the call fills in the one of this frame.
        let is_handled = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            is_known && !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
        };
        if is_handled {
            make_usual(signal);
        }
    }
}

/// No signal is blocked or, other than by the user's wish, ignored: Rust's runtime ignores SIGPIPE in every program.
fn let_signals_through() {
    make_usual(libc::SIGPIPE);
    // SAFETY: all-zero is a valid set, which these calls fill in and read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Does with a signal what the kernel does of itself, in the child's own table.
fn make_usual(signal: c_int) {
    // SAFETY: all-zero is a valid action, the usual one with no flags, and outlives the call.
    unsafe {
        let usual: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const usual, ptr::null_mut());
    }
}
