//! Where tasks and all that descends from them run: their time on each CPU, as the kernel adds it up, and the records of their moves.
//! Recording moves needs the kernel's part to be permitted; the time alone needs no privilege at `perf_event_paranoid` up to 2.

use std::io;
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

use super::switches::{Record, Recorded, Switches, Totals};

/// Where some tasks run. Each thread that they start takes one event more on each CPU, and gives its time back when it ends.
pub enum Residency {
    /// Events that record moves, each for one CPU: they run when their task does, so that they are clocks as well.
    Moves(Switches),
    /// Clocks alone, each of one CPU, where moves may not be recorded.
    Clocks(Vec<(u32, Counter)>),
}

impl Residency {
    /// Of the calling task, from when it executes a program.
    ///
    /// # Errors
    /// The kernel's: not permitted, or no free descriptor.
    pub fn from_exec(cpus: &[u32]) -> io::Result<Self> {
        if let Ok(moves) = Switches::moves_from_exec(cpus) {
            return Ok(Self::Moves(moves));
        }
        let open = |&cpu: &u32| Ok((cpu, builder(0, cpu).enable_on_exec(true).build()?));
        cpus.iter().map(open).collect::<io::Result<_>>().map(Self::Clocks)
    }

    /// Of tasks that run, from now on.
    ///
    /// # Errors
    /// As of [`Residency::from_exec`]; a task that has ended is no error.
    pub fn of_running(tids: &[u32], cpus: &[u32]) -> io::Result<Self> {
        let numbers: Vec<i32> = tids.iter().map(|&tid| i32::try_from(tid).unwrap_or(i32::MAX)).collect();
        match moves(&numbers, cpus) {
            Ok(moves) => Ok(Self::Moves(moves)),
            Err(_) => clocks(&numbers, cpus).map(Self::Clocks),
        }
    }

    /// Takes what was recorded of moves since the last call. Are they recorded at all?
    pub fn drain(&mut self, records: &mut Vec<Record>) -> bool {
        match self {
            Self::Moves(moves) => {
                moves.drain(records);
                true
            }
            Self::Clocks(_) => false,
        }
    }

    /// The CPU time of the thread that made this, until its moves were recorded.
    pub fn used_before(&self) -> Duration {
        match self {
            Self::Moves(moves) => moves.used_before,
            Self::Clocks(_) => Duration::ZERO,
        }
    }

    /// Nanoseconds on each CPU so far, without those that have none, and how many records of moves found no room.
    pub fn totals(&mut self) -> Totals {
        let clocks = match self {
            Self::Moves(moves) => return moves.totals(),
            Self::Clocks(clocks) => clocks,
        };
        let mut totals = Totals::default();
        for (cpu, clock) in clocks {
            if let Some(time) = clock.read().ok().filter(|&time| time > 0) {
                *totals.cpu.entry(*cpu).or_default() += time;
            }
        }
        totals
    }
}

fn moves(tids: &[i32], cpus: &[u32]) -> io::Result<Switches> {
    let (first, others) = tids.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut moves = Switches::of(*first, cpus, Recorded::Moves)?;
    others.iter().try_for_each(|&tid| moves.add(tid))?;
    Ok(moves)
}

fn clocks(tids: &[i32], cpus: &[u32]) -> io::Result<Vec<(u32, Counter)>> {
    let mut clocks = Vec::new();
    for &tid in tids {
        for &cpu in cpus {
            match builder(tid, cpu).build() {
                Ok(clock) => clocks.push((cpu, clock)),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                Err(error) => return Err(error),
            }
        }
    }
    for (_, clock) in &mut clocks {
        clock.enable()?;
    }
    Ok(clocks)
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

    use super::{Residency, clocks, moves};

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
            let own = [rustix::thread::gettid().as_raw_nonzero().get()];
            let both = [
                moves(&own, &cpus).map(Residency::Moves),
                clocks(&own, &cpus).map(Residency::Clocks),
            ];
            let from = used();
            while used() < from + Duration::from_millis(50) {}
            let least = (used() - from).as_nanos() as u64;
            both.map(|residency| Ok::<_, std::io::Error>((residency?.totals().cpu, least)))
        });
        for ran in ran.join().expect("no panic") {
            let (read, least) = match ran {
                Ok(ran) => ran,
                Err(error) => {
                    testing::skipped(&format!("no clocks of tasks: {error}"));
                    continue;
                }
            };
            let (cpu, time) = read.first_key_value().expect("time");
            assert_eq!((*cpu, read.len()), (last, 1), "{read:?}");
            // Opening and reading them is time of this thread, too.
            assert!(
                *time as f64 >= 0.98 * least as f64 && *time < 2 * least,
                "{time} ns of {least} ns"
            );
        }
    }

    #[test]
    fn a_task_that_has_ended_is_left_out() {
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        let pid = child.id();
        child.wait().expect("ends");
        match Residency::of_running(&[pid], &[0]) {
            Ok(mut none) => assert!(none.totals().cpu.is_empty()),
            Err(error) => testing::skipped(&format!("no clocks of tasks: {error}")),
        }
    }
}
