//! The calls of ptrace: one thread is taken, stepped, and let go.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// General registers of a stopped thread.
pub(super) type Registers = libc::user_regs_struct;

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Step,
    /// A signal is about to reach it.
    Signal(c_int),
    /// It was asked to, or all of its process was stopped.
    Asked,
    Gone,
}

fn request(what: libc::c_uint, thread: u32, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests made here takes an address or writes to this process's memory.
    unsafe { ptrace(what, thread, 0, ptr::without_provenance_mut(data)) }
}

/// # Safety
/// `data` is what the request takes: a number, or where registers are in this process.
unsafe fn ptrace(what: libc::c_uint, thread: u32, at: u64, data: *mut c_void) -> io::Result<()> {
    // SAFETY: the address is the other thread's, and the caller vouches for the data.
    match unsafe { libc::ptrace(what, thread, at, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes a thread without stopping it; it lives on if this process ends. It stops when it is about to end, as by SIGKILL: that it has ended is known no sooner
/// than that its other threads have, which may be traced as well.
pub(super) fn seize(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, libc::PTRACE_O_TRACEEXIT as usize)
}

pub(super) fn interrupt(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Runs one instruction, with a signal or without (0).
pub(super) fn step(thread: u32, signal: c_int) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP, thread, signal as usize)
}

/// Lets a stopped thread go, with a signal or without (0).
pub(super) fn let_go(thread: u32, signal: c_int) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, signal as usize)
}

pub(super) fn registers(thread: u32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::zeroed();
    // SAFETY: the kernel fills in the structure, which is the one of this CPU.
    unsafe { ptrace(libc::PTRACE_GETREGS, thread, 0, registers.as_mut_ptr().cast()) }?;
    // SAFETY: all-zero is valid in numbers, and the kernel filled it in.
    Ok(unsafe { registers.assume_init() })
}

/// Is the call that a thread is about to make one that starts another program in its process?
pub(super) fn is_exec(registers: &Registers) -> bool {
    [libc::SYS_execve, libc::SYS_execveat].contains(&registers.rax.cast_signed())
}

/// Memory of another process; fewer bytes where it ends.
pub(super) fn memory(thread: u32, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: ptr::without_provenance_mut(at as usize),
        iov_len: into.len(),
    };
    // SAFETY: the local memory is the slice's; the remote address is the other process's, where nothing is written.
    let read = unsafe { libc::process_vm_readv(thread.cast_signed(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// The trap flag, by which a CPU steps. The kernel hides it, but for what POPF and PUSHF do with it.
const TRAP: u64 = 1 << 8;
/// Flags that POPF sets and ptrace, too: CF, PF, AF, ZF, SF, DF, OF, AC.
const POPPED: u64 = 0x4_0cd5;
/// Flags that POPF of a program does not change: IF, IOPL, RF.
const KEPT: u64 = 0x1_3200;

/// Takes the trap flag out of the flags that a thread has just pushed: popped by the program, it would go on stepping by itself, and end by a signal.
pub(super) fn hide_trap_flag(thread: u32) -> io::Result<()> {
    let at = registers(thread)?.rsp;
    let Some(pushed) = word(thread, at)? else {
        return Ok(());
    };
    // SAFETY: one word of the other thread's stack is written, which its last instruction wrote.
    unsafe {
        let word = ptr::without_provenance_mut((pushed & !TRAP) as usize);
        ptrace(libc::PTRACE_POKEDATA, thread, at, word)
    }
}

/// Did a step push a word? One that delivers a signal may stop where its handler begins, with a whole frame on the stack and before the instruction.
pub(super) fn has_pushed(thread: u32, before: &Registers) -> io::Result<bool> {
    Ok(registers(thread)?.rsp == before.rsp.wrapping_sub(8))
}

/// Does in place of a thread what its next instruction does, a POPF of 8 bytes that is followed by `next`: of one that is stepped the kernel believes that
/// the program itself had set the trap flag. Of flags that ptrace cannot set nothing is done, and the answer is no.
pub(super) fn pop_flags(thread: u32, before: &Registers, next: u64) -> io::Result<bool> {
    let Some(popped) = word(thread, before.rsp)? else {
        return Ok(false);
    };
    if (popped ^ before.eflags) & !(POPPED | KEPT) != 0 {
        return Ok(false);
    }
    let after = Registers {
        eflags: before.eflags & !POPPED | popped & POPPED,
        rsp: before.rsp + 8,
        rip: next,
        ..*before
    };
    set_registers(thread, &after).map(|()| true)
}

/// Clears the trap flag of a thread that is let go, if the kernel does not know that it is ours.
pub(super) fn clear_trap_flag(thread: u32) -> io::Result<()> {
    let seen = registers(thread)?;
    if seen.eflags & TRAP == 0 {
        return Ok(());
    }
    let cleared = Registers {
        eflags: seen.eflags & !TRAP,
        ..seen
    };
    set_registers(thread, &cleared)
}

fn set_registers(thread: u32, registers: &Registers) -> io::Result<()> {
    // SAFETY: the kernel reads the structure, which is the one of this CPU.
    unsafe {
        ptrace(
            libc::PTRACE_SETREGS,
            thread,
            0,
            ptr::from_ref(registers).cast_mut().cast(),
        )
    }
}

/// Eight bytes of a thread's stack; none where it ends before.
fn word(thread: u32, at: u64) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    let read = memory(thread, at, &mut bytes)?;
    Ok((read == bytes.len()).then(|| u64::from_le_bytes(bytes)))
}

/// Waits until a thread stops, or looks whether it has: then there may be no answer. The end of a process is left to be waited for;
/// that of one of its other threads is not.
pub(super) fn stopped(thread: u32, leader: u32, waits: bool) -> io::Result<Option<Stop>> {
    let now = if waits { 0 } else { libc::WNOHANG };
    let Some(info) = wait(thread, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | now)? else {
        return Ok(None);
    };
    // SAFETY: waitid fills in the fields of a child's state.
    let status = unsafe { info.si_status() };
    if info.si_code != libc::CLD_TRAPPED && info.si_code != libc::CLD_STOPPED {
        if thread != leader {
            wait(thread, libc::WEXITED | libc::WNOHANG)?;
        }
        return Ok(Some(Stop::Gone));
    }
    wait(thread, libc::WSTOPPED | libc::WNOHANG)?;
    Ok(Some(match (status >> 8, status & 0xff) {
        (0, libc::SIGTRAP) => Stop::Step,
        (0, signal) => Stop::Signal(signal),
        _ => Stop::Asked,
    }))
}

fn wait(thread: u32, options: c_int) -> io::Result<Option<libc::siginfo_t>> {
    loop {
        // SAFETY: all-zero is a valid siginfo, and the call only fills it in.
        let (result, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let result = libc::waitid(libc::P_PID, thread, &raw mut info, options | libc::__WALL);
            (result, info)
        };
        if result == 0 {
            return Ok((info.si_signo != 0).then_some(info));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
pub(super) fn registers_of_zeros() -> Registers {
    // SAFETY: all-zero is valid in numbers.
    unsafe { std::mem::zeroed() }
}
