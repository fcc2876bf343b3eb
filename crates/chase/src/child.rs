//! Child processes without a library in between: nothing runs in them but what is written here.

use std::io;

use rustix::process::{Pid, Signal, WaitOptions};

/// A system call and its arguments, all that a short-lived child does.
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) arguments: [usize; 5],
}

impl Call {
    /// Ends the child with status 0.
    pub(crate) fn exit() -> Self {
        Self {
            number: libc::SYS_exit_group,
            arguments: [0; 5],
        }
    }
}

/// Status of a child whose call came back.
const CALL_FAILED: i32 = 127;

/// How a child gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Fork,
    /// The parent's, which stands still until the child has ended or executes a program.
    Vfork,
}

impl Start {
    fn flags(self) -> u64 {
        let shared = match self {
            Self::Fork => 0,
            Self::Vfork => libc::CLONE_VM | libc::CLONE_VFORK,
        };
        (shared | libc::SIGCHLD) as u64
    }

    /// Starts a child that makes one system call and ends with [`CALL_FAILED`] if that comes back.
    pub(crate) fn process(self, call: &Call) -> io::Result<Pid> {
        let [a, b, c, d, e] = call.arguments;
        let result: i64;
        // SAFETY: the child runs in registers only until it ends or executes a program: it touches no memory, so it may even
        // share the parent's stack (no red zone is in use, as the block may push). The kernel preserves all registers but
        // rax, rcx and r11.
        unsafe {
            core::arch::asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "mov rax, r12",
                "mov rdi, r13",
                "mov rsi, r14",
                "mov rdx, r15",
                "syscall",
                "mov eax, {exit}",
                "mov edi, {failed}",
                "syscall",
                "ud2",
                "2:",
                exit = const libc::SYS_exit_group,
                failed = const CALL_FAILED,
                inlateout("rax") libc::SYS_clone => result,
                in("rdi") self.flags(),
                in("rsi") 0usize,
                in("rdx") 0usize,
                in("r10") d,
                in("r8") e,
                in("r12") call.number,
                in("r13") a,
                in("r14") b,
                in("r15") c,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        pid(result)
    }
}

/// The kernel's answer to `clone` in the parent.
fn pid(result: i64) -> io::Result<Pid> {
    let errno = |negative: i64| io::Error::from_raw_os_error(-negative as i32);
    Pid::from_raw(result as i32)
        .filter(|_| result > 0)
        .ok_or_else(|| errno(result))
}

/// Waits for the end of a child, which must be a normal one with that status.
pub(crate) fn wait_for(child: Pid, status: i32) -> io::Result<()> {
    let ended = reap(child)?;
    match ended.and_then(|(_, ended)| ended.exit_status()) {
        Some(seen) if seen == status => Ok(()),
        Some(CALL_FAILED) => Err(io::Error::other("the kernel refused the child's system call")),
        _ => Err(io::Error::other("a child did not end as it should")),
    }
}

fn reap(child: Pid) -> io::Result<Option<(Pid, rustix::process::WaitStatus)>> {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// A child that lives until this value is dropped, or until the thread that started it ends in whatever way.
#[derive(Debug)]
pub(crate) struct Child(Pid);

impl Child {
    pub(crate) fn idle() -> io::Result<Self> {
        Self::running(|| {
            loop {
                // SAFETY: sleeps until a signal.
                unsafe { libc::pause() };
            }
        })
    }

    /// One that does `work`, and ends if that fails. `work` runs in a copy of one thread of this process: it must neither
    /// allocate nor lock nor panic, which is why this stays inside the crate.
    pub(crate) fn running(work: impl FnOnce() -> rustix::io::Result<std::convert::Infallible>) -> io::Result<Self> {
        let parent = rustix::process::getpid();
        // SAFETY: a fork, without the C library's preparations; the copy makes bare system calls only, and ends here.
        let result = unsafe { libc::syscall(libc::SYS_clone, Start::Fork.flags(), 0usize, 0usize, 0usize, 0usize) };
        match result {
            0 => {
                let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                // The parent may have ended before the child was tied to it.
                if tied.is_ok() && rustix::process::getppid() == Some(parent) {
                    let _ = work();
                }
                // SAFETY: ends this process at once; no destructor and no buffer of the parent's copy is run.
                unsafe { libc::_exit(CALL_FAILED) }
            }
            -1 => Err(io::Error::last_os_error()),
            started => pid(started).map(Self),
        }
    }

    /// Asks it to end, so that many end at the same time before each is waited for.
    pub(crate) fn end(&self) {
        // Can only fail if it is gone already.
        let _ = rustix::process::kill_process(self.0, Signal::KILL);
    }

    #[cfg(test)]
    pub(crate) fn pid(&self) -> Pid {
        self.0
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
        let _ = reap(self.0);
    }
}
