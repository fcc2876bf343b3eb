//! A window of a program's run: one thread is stepped instruction by instruction, and its accesses are read off its registers.
//!
//! The thread runs as slowly as that for the time of the window only. Nothing of the program is changed but, for that time, the CPU
//! that the thread runs on.

mod operands;
mod syscall;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use host::Source;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use self::operands::Operands;
pub use self::operands::Touch;
use self::syscall::Stop;
use super::handles::by_number;

/// How often a thread that is in the kernel is looked at.
const POLL_PERIOD: Duration = Duration::from_micros(200);
/// A window ends with a system call that takes longer: other threads work then, and are not seen before.
const LONGEST_CALL: Duration = Duration::from_millis(100);

/// What a thread did while it was stepped.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Instructions; all rounds of a repeated one are one.
    pub instructions: u64,
    /// Accesses in their order.
    pub touched: Vec<Touch>,
    /// Accesses whose address is not known: gathers and scatters.
    pub hidden: u64,
}

/// How long a window may be.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Steps.
    pub steps: u64,
    /// Time.
    pub time: Duration,
}

/// Steps a thread of a process. It may end during this, or wait in the kernel for longer than [`LONGEST_CALL`]; then the window is shorter.
///
/// # Errors
/// The kernel's: such a thread cannot be traced, as one that another tool traces.
pub fn window(process: u32, thread: u32, bound: Bound, stop: &dyn Fn() -> bool) -> io::Result<Window> {
    let _pinned = Pinned::together(thread);
    syscall::seize(thread)?;
    let mut taken = Taken {
        thread,
        process,
        signal: 0,
        is_stopped: false,
    };
    syscall::interrupt(thread)?;
    let mut window = Window::default();
    taken.is_stopped = true;
    let first = syscall::stopped(thread, process, true)?;
    match first {
        Some(Stop::Gone) | None => {
            taken.is_stopped = false;
            return Ok(window);
        }
        Some(Stop::Signal(signal)) => taken.signal = signal,
        Some(Stop::Step | Stop::Asked) => {}
    }
    taken.run(bound, stop, &mut window)?;
    Ok(window)
}

/// A thread that is traced; it is let go on every way out.
struct Taken {
    thread: u32,
    process: u32,
    /// To be delivered when it goes on.
    signal: i32,
    is_stopped: bool,
}

impl Taken {
    fn run(&mut self, bound: Bound, stop: &dyn Fn() -> bool, window: &mut Window) -> io::Result<()> {
        let mut operands = Operands::new();
        let until = Instant::now() + bound.time;
        for number in 0..bound.steps {
            if number % 256 == 0 && (stop() || Instant::now() >= until) {
                break;
            }
            let registers = syscall::registers(self.thread)?;
            let code =
                |bytes: &mut [u8; operands::LONGEST]| syscall::memory(self.thread, registers.rip, bytes).unwrap_or(0);
            let next = operands.next(&registers, code, &mut window.touched, &mut window.hidden);
            window.instructions += u64::from(!next.is_another);
            if let Some(behind) = next.pops_flags
                && self.signal == 0
                && syscall::pop_flags(self.thread, &registers, behind)?
            {
                continue;
            }
            let signal = std::mem::take(&mut self.signal);
            syscall::step(self.thread, signal)?;
            self.is_stopped = false;
            let stopped = if next.is_call {
                self.stopped_by(until.min(Instant::now() + LONGEST_CALL), stop)?
            } else {
                syscall::stopped(self.thread, self.process, true)?
            };
            match stopped {
                Some(Stop::Step) => {
                    self.is_stopped = true;
                    if next.pushes_flags && (signal == 0 || syscall::has_pushed(self.thread, &registers)?) {
                        syscall::hide_trap_flag(self.thread)?;
                    }
                }
                Some(Stop::Signal(signal)) => (self.is_stopped, self.signal) = (true, signal),
                Some(Stop::Asked) => {
                    self.is_stopped = true;
                    break;
                }
                Some(Stop::Gone) | None => break,
            }
        }
        Ok(())
    }

    /// Like a wait that ends: a call of the kernel may take for ever.
    fn stopped_by(&self, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Stop>> {
        loop {
            let stopped = syscall::stopped(self.thread, self.process, false)?;
            if stopped.is_some() || stop() {
                return Ok(stopped);
            }
            if Instant::now() >= until {
                syscall::interrupt(self.thread)?;
                return syscall::stopped(self.thread, self.process, true);
            }
            thread::sleep(POLL_PERIOD);
        }
    }
}

impl Drop for Taken {
    /// A thread has to be stopped to be let go. Each call fails only if it has ended.
    fn drop(&mut self) {
        if !self.is_stopped && syscall::interrupt(self.thread).is_ok() {
            match syscall::stopped(self.thread, self.process, true) {
                Ok(Some(Stop::Signal(signal))) => self.signal = signal,
                Ok(Some(Stop::Step | Stop::Asked)) => {}
                Ok(Some(Stop::Gone) | None) | Err(_) => return,
            }
        }
        // Asked to stop within a call of the kernel, it stops before the trap of that step reaches it, which would end the program later.
        if has_pending_trap(self.process, self.thread) && syscall::step(self.thread, 0).is_ok() {
            let _ = syscall::stopped(self.thread, self.process, true);
        }
        let _ = syscall::clear_trap_flag(self.thread);
        let _ = syscall::let_go(self.thread, self.signal);
    }
}

/// Does a thread have a SIGTRAP that was not delivered yet?
fn has_pending_trap(process: u32, thread: u32) -> bool {
    const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
    let status = Source::live().text(&format!("/proc/{process}/task/{thread}/status"));
    let pending = status.known().and_then(|text| {
        let mask = text.lines().find_map(|line| line.strip_prefix("SigPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    pending.is_some_and(|pending| pending & TRAP != 0)
}

/// Both threads on one CPU: a step takes a quarter of the time. It is as before when this is dropped.
struct Pinned {
    own: Option<CpuSet>,
    other: Option<(Pid, CpuSet)>,
}

impl Pinned {
    fn together(thread: u32) -> Self {
        let mut pinned = Self { own: None, other: None };
        let (Some(pid), Ok(own)) = (by_number(thread), sched_getaffinity(None)) else {
            return pinned;
        };
        let Ok(others) = sched_getaffinity(Some(pid)) else {
            return pinned;
        };
        let here = sched_getcpu();
        let may = |cpu: &usize| own.is_set(*cpu) && others.is_set(*cpu);
        let Some(cpu) = [here].into_iter().chain(0..CpuSet::MAX_CPU).find(may) else {
            return pinned;
        };
        let mut one = CpuSet::new();
        one.set(cpu);
        if sched_setaffinity(None, &one).is_ok() {
            pinned.own = Some(own);
        }
        if sched_setaffinity(Some(pid), &one).is_ok() {
            pinned.other = Some((pid, others));
        }
        pinned
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some((pid, cpus)) = &self.other {
            let _ = sched_setaffinity(Some(*pid), cpus);
        }
        if let Some(cpus) = &self.own {
            let _ = sched_setaffinity(None, cpus);
        }
    }
}

/// Registers of zeros, for tests of what depends on them.
#[cfg(test)]
fn no_registers() -> syscall::Registers {
    syscall::registers_of_zeros()
}
