//! The timed thread: kept on one CPU, with a record of what disturbed it.

use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

pub use crate::syscall::involuntary_switches;

/// Keeps the calling thread on one CPU until dropped, then gives it back the CPUs it had.
#[derive(Debug)]
pub struct Pinned {
    pub cpu: u32,
    before: CpuSet,
}

impl Pinned {
    /// Pins the calling thread to `cpu`, or to the CPU it runs on now.
    ///
    /// # Errors
    /// If the CPU does not exist, is offline or not allowed to this process.
    pub fn to(cpu: Option<u32>) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let cpu = cpu.unwrap_or_else(current_cpu);
        if cpu as usize >= CpuSet::MAX_CPU || !before.is_set(cpu as usize) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "CPU {cpu} does not exist or is not allowed to this process ({} are)",
                    before.count()
                ),
            ));
        }
        stay_on(cpu)?;
        Ok(Self { cpu, before })
    }

    /// Lets the calling thread, a helper that set this one up, run wherever the pinned one could before.
    pub fn free_helper(&self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Lets the calling thread run on that CPU alone.
///
/// # Errors
/// The kernel's, if the CPU does not exist, is offline or not allowed to this process.
pub fn stay_on(cpu: u32) -> rustix::io::Result<()> {
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL);
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
}

/// CPU time of the calling thread: time in which others had the CPU is no cost of what it does.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// The CPU the calling thread runs on now.
pub fn current_cpu() -> u32 {
    sched_getcpu() as u32
}

/// The CPUs that this thread may run on, in ascending order.
///
/// # Errors
/// If the kernel does not say.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{Pinned, allowed_cpus, current_cpu};

    #[test]
    fn pins_and_gives_back() {
        let before = rustix::thread::sched_getaffinity(None).expect("affinity");
        let last = (0..1024).rev().find(|&cpu| before.is_set(cpu)).expect("a CPU") as u32;
        let pinned = Pinned::to(Some(last)).expect("an allowed CPU");
        assert_eq!(current_cpu(), last);
        assert_eq!(allowed_cpus().expect("affinity"), [last]);
        let helper = std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                pinned.free_helper();
                rustix::thread::sched_getaffinity(None).expect("affinity")
            });
            helper.join().expect("a helper")
        });
        assert_eq!(helper, before);
        drop(pinned);
        assert_eq!(rustix::thread::sched_getaffinity(None).expect("affinity"), before);
        assert!(Pinned::to(Some(1023)).is_err() || before.is_set(1023));
    }
}
