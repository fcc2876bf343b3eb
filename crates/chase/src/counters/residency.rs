//! CPU time of tasks and of all that descends from them on each CPU, as the kernel adds it up: a clock for each CPU and no records.
//! It needs no privilege at `perf_event_paranoid` up to 2.

use std::collections::BTreeMap;
use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

/// Clocks of some tasks. Each thread that they start takes one more on each CPU, and gives its time back when it ends.
pub struct Residency(Vec<OnCpu>);

struct OnCpu {
    cpu: u32,
    clock: Counter,
}

impl Residency {
    /// Of the calling task, from when it executes a program.
    ///
    /// # Errors
    /// The kernel's: not permitted, or no free descriptor.
    pub fn from_exec(cpus: &[u32]) -> io::Result<Self> {
        let open = |&cpu: &u32| {
            let clock = builder(0, cpu).enable_on_exec(true).build()?;
            Ok(OnCpu { cpu, clock })
        };
        cpus.iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// Of tasks that run, from now on.
    ///
    /// # Errors
    /// As of [`Residency::from_exec`]; a task that has ended is no error.
    pub fn of_running(tids: impl IntoIterator<Item = u32>, cpus: &[u32]) -> io::Result<Self> {
        let mut clocks = Vec::new();
        for tid in tids {
            let tid = i32::try_from(tid).unwrap_or(i32::MAX);
            for &cpu in cpus {
                match builder(tid, cpu).build() {
                    Ok(clock) => clocks.push(OnCpu { cpu, clock }),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        for on_cpu in &mut clocks {
            on_cpu.clock.enable()?;
        }
        Ok(Self(clocks))
    }

    /// Nanoseconds on each CPU so far; those without time are left out.
    pub fn read(&mut self) -> BTreeMap<u32, u64> {
        let mut read = BTreeMap::new();
        for OnCpu { cpu, clock } in &mut self.0 {
            if let Some(time) = clock.read().ok().filter(|&time| time > 0) {
                *read.entry(*cpu).or_default() += time;
            }
        }
        read
    }
}

fn builder(tid: i32, cpu: u32) -> Builder<'static> {
    let mut builder = Builder::new(Software::TASK_CLOCK);
    builder.observe_pid(tid).one_cpu(cpu as usize).inherit(true);
    builder
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Residency;

    fn used() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
    }

    /// What it uses is what the clock of the thread has, and all of it on the CPU that it is pinned to.
    #[test]
    fn time_is_that_of_the_thread_on_its_cpu() {
        let all = sched_getaffinity(None).expect("the CPUs of this thread");
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| all.is_set(cpu))
            .map(|cpu| cpu as u32)
            .collect();
        let last = *cpus.last().expect("a CPU");
        let ran = std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(last as usize);
            sched_setaffinity(None, &set).expect("moved");
            let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            let mut residency = Residency::of_running([own], &cpus)?;
            let from = used();
            while used() < from + Duration::from_millis(50) {}
            let (read, least) = (residency.read(), (used() - from).as_nanos() as u64);
            Ok::<_, std::io::Error>((read, least))
        });
        let (read, least) = match ran.join().expect("no panic") {
            Ok(ran) => ran,
            Err(error) => return testing::skipped(&format!("no clocks of tasks: {error}")),
        };
        let (cpu, time) = read.first_key_value().expect("time");
        assert_eq!((*cpu, read.len()), (last, 1), "{read:?}");
        // Opening and reading them is time of this thread, too.
        assert!(
            *time as f64 >= 0.98 * least as f64 && *time < 2 * least,
            "{time} ns of {least} ns"
        );
    }

    #[test]
    fn a_task_that_has_ended_is_left_out() {
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        let pid = child.id();
        child.wait().expect("ends");
        match Residency::of_running([pid], &[0]) {
            Ok(mut none) => assert!(none.read().is_empty()),
            Err(error) => testing::skipped(&format!("no clocks of tasks: {error}")),
        }
    }
}
