//! A thread that is traced, and stepped.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use host::Source;

use super::operands::{self, Operands, Touch};
use super::syscall::{self, Stop};

/// How often a thread that is in the kernel is looked at.
const POLL_PERIOD: Duration = Duration::from_micros(200);
/// Nearly all steps are over by then.
const SHORT: Duration = Duration::from_millis(1);
/// A window ends with a system call that takes longer: other threads work then, and are not seen before.
pub(super) const LONGEST_CALL: Duration = Duration::from_millis(100);

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
    pub steps: u64,
    pub time: Duration,
}

/// A thread that is traced; it is let go on every way out.
pub(super) struct Taken {
    thread: u32,
    process: u32,
    /// To be delivered when it goes on.
    signal: i32,
    /// Does it stand still?
    pub(super) is_stopped: bool,
}

impl Taken {
    /// Takes a thread, and asks it to stop.
    pub(super) fn ask(process: u32, thread: u32) -> io::Result<Self> {
        syscall::seize(thread)?;
        let taken = Self {
            thread,
            process,
            signal: 0,
            is_stopped: false,
        };
        syscall::interrupt(thread)?;
        Ok(taken)
    }

    /// Waits until it has stopped; not if it has ended.
    pub(super) fn wait(&mut self) -> io::Result<bool> {
        let stopped = syscall::stopped(self.thread, self.process, true)?;
        Ok(self.has_stopped(stopped))
    }

    /// Has it stopped, or ended, by now?
    pub(super) fn is_still(&mut self) -> io::Result<bool> {
        let stopped = syscall::stopped(self.thread, self.process, false)?;
        Ok(self.has_stopped(stopped) || stopped == Some(Stop::Gone))
    }

    fn has_stopped(&mut self, stopped: Option<Stop>) -> bool {
        self.is_stopped = !matches!(stopped, Some(Stop::Gone) | None);
        if let Some(Stop::Signal(signal)) = stopped {
            self.signal = signal;
        }
        self.is_stopped
    }

    pub(super) fn step(&mut self, bound: Bound, stop: &dyn Fn() -> bool, window: &mut Window) -> io::Result<()> {
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
            if next.is_call && syscall::is_exec(&registers) {
                // Another program follows, whose first thread this one becomes.
                break;
            }
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
            let stopped = self.stopped_by(until.min(Instant::now() + LONGEST_CALL), stop)?;
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

    /// Where it has stopped; none if it takes longer. A step may wait for ever: in a call of the kernel, or in one that it was stopped in and begins anew, for a thread
    /// that stands still.
    fn stopped_by(&self, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Stop>> {
        let begun = Instant::now();
        loop {
            let stopped = syscall::stopped(self.thread, self.process, false)?;
            if stopped.is_some() || stop() || Instant::now() >= until {
                return Ok(stopped);
            }
            if begun.elapsed() < SHORT {
                // Both are on one CPU.
                thread::yield_now();
            } else {
                thread::sleep(POLL_PERIOD);
            }
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
        // One that was killed during this cannot be let go before it stops for the last time, and its process does not end before.
        while syscall::let_go(self.thread, self.signal).is_err() {
            match syscall::stopped(self.thread, self.process, true) {
                Ok(Some(Stop::Step | Stop::Signal(_) | Stop::Asked)) => {}
                Ok(Some(Stop::Gone) | None) | Err(_) => break,
            }
        }
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
