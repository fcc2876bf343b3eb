//! A window of a program's run: one thread is stepped instruction by instruction, and its accesses are read off its registers.
//!
//! The thread runs as slowly as that for the time of the window only, and the other threads of its process stand still. Nothing of the program is changed but, for
//! that time, the CPU that the thread runs on.

mod operands;
mod others;
mod syscall;
mod taken;

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

pub use self::operands::Touch;
use self::taken::Taken;
pub use self::taken::{Bound, Window};
use super::handles::by_number;

/// Steps a thread of a process. It may end during this, or wait in the kernel for longer than [`taken::LONGEST_CALL`]; then the window is shorter.
///
/// # Errors
/// The kernel's: such a thread cannot be traced, as one that another tool traces.
pub fn window(process: u32, thread: u32, bound: Bound, stop: &dyn Fn() -> bool) -> io::Result<Window> {
    // Let go after the stepped one.
    let mut others = others::stop(process, thread);
    let _pinned = Pinned::together(thread);
    let mut window = Window::default();
    let mut taken = Taken::ask(process, thread)?;
    if taken.wait()? {
        let stepped = taken.step(bound, stop, &mut window);
        if !taken.is_stopped {
            // The call of the kernel in which it is may wait for them.
            others.clear();
        }
        stepped?;
    }
    Ok(window)
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
