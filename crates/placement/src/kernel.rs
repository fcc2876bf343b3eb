//! Records of context switches by either of the kernel's ways: perf events, or programs at tracepoints (BPF).

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use chase::counters::bpf::{Followed, Traced};
use chase::counters::switches::{Record, Recorded, Switches, What, now};
use host::Source;
use model::placement::{Method, NoBpf, NoRecords};
use process::tree;

/// Threads that start while others are attached to are found in so many passes.
const PASSES: usize = 16;

/// Which records a user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Those that cost the program least.
    #[default]
    Cheapest,
    /// By BPF, else by perf events.
    Bpf,
    Perf,
    /// None: clocks of each CPU.
    Clocks,
}

/// Recorded switches of a program.
pub(crate) enum Kernel {
    Perf(Switches),
    Bpf(Traced, Followed),
}

impl Wanted {
    /// The programs, if they are wanted and this machine has them.
    pub(crate) fn traced(self) -> (Option<Traced>, Option<NoBpf>) {
        let traced = match self {
            Self::Cheapest | Self::Bpf => Traced::new(),
            Self::Perf | Self::Clocks => Err(NoBpf::NotWanted),
        };
        match traced {
            Ok(traced) => (Some(traced), None),
            Err(why) => (None, Some(why)),
        }
    }
}

impl Kernel {
    /// All threads of a process that runs and of those that descend from it, and who they are. Some start during this: those that a
    /// recorded thread started are recorded already, and their start is among the records.
    pub(crate) fn of_running(
        source: &Source,
        pid: u32,
        cpus: &[u32],
        traced: Option<Traced>,
    ) -> io::Result<(Self, BTreeSet<(u32, u32)>)> {
        let mut kernel = match traced {
            Some(mut traced) => {
                traced.add(pid, pid)?;
                let used_before = Duration::ZERO;
                let began = now();
                Self::Bpf(traced, Followed { began, used_before })
            }
            None => Self::Perf(Switches::of(number(pid), cpus, Recorded::Switches)?),
        };
        let mut known = BTreeSet::from([(pid, pid)]);
        let mut records = Vec::new();
        for _ in 0..PASSES {
            let found = threads(source, pid);
            // The record of a start comes after the thread can be seen.
            std::thread::sleep(Duration::from_millis(1));
            kernel.drain(&mut records);
            let started = records.iter().filter(|record| record.what == What::Fork);
            let inherited: BTreeSet<(u32, u32)> = started.map(|record| (record.pid, record.tid)).collect();
            let is_new = |thread: &&(u32, u32)| !inherited.contains(thread);
            let new: Vec<_> = found.difference(&known).filter(is_new).copied().collect();
            for &(pid, tid) in &new {
                kernel.add(pid, tid)?;
            }
            known.extend(found);
            if new.is_empty() {
                break;
            }
        }
        Ok((kernel, known))
    }

    fn add(&mut self, pid: u32, tid: u32) -> io::Result<()> {
        match self {
            Self::Perf(switches) => switches.add(number(tid)),
            Self::Bpf(traced, followed) => {
                traced.add(pid, tid)?;
                followed.began = now();
                Ok(())
            }
        }
    }

    /// Takes what was recorded since the last call, and gives how full its rings were.
    pub(crate) fn drain(&mut self, records: &mut Vec<Record>) -> f64 {
        match self {
            Self::Perf(switches) => switches.drain(records),
            Self::Bpf(traced, _) => traced.drain(records),
        }
    }

    /// Records that found no room so far.
    pub(crate) fn lost(&mut self) -> u64 {
        match self {
            Self::Perf(switches) => switches.lost(),
            Self::Bpf(traced, _) => traced.lost(),
        }
    }

    /// Threads that are not recorded, as there are too many.
    pub(crate) fn unfollowed(&self) -> u64 {
        match self {
            Self::Perf(_) => 0,
            Self::Bpf(traced, _) => traced.unfollowed(),
        }
    }

    pub(crate) fn began(&self) -> u64 {
        match self {
            Self::Perf(switches) => switches.began(),
            Self::Bpf(_, followed) => followed.began,
        }
    }

    pub(crate) fn used_before(&self) -> Duration {
        match self {
            Self::Perf(switches) => switches.used_before(),
            Self::Bpf(_, followed) => followed.used_before,
        }
    }

    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Perf(_) => Method::SwitchRecords,
            Self::Bpf(..) => Method::Bpf,
        }
    }
}

fn number(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
}

fn threads(source: &Source, pid: u32) -> BTreeSet<(u32, u32)> {
    let pids = tree::of(source, pid).pids.into_iter();
    pids.flat_map(|pid| tree::tasks(source, pid).into_iter().map(move |tid| (pid, tid)))
        .collect()
}

pub(crate) fn may_record_own(cpus: &[u32]) -> bool {
    Switches::of(0, cpus.get(..1).unwrap_or_default(), Recorded::Switches).is_ok()
}

/// What an error of perf_event_open means to a user, who may record own processes or not even those.
pub(crate) fn refusal(error: &io::Error, may_record_own: impl Fn() -> bool) -> NoRecords {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) if may_record_own() => NoRecords::OtherUser,
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => NoRecords::NotPermitted,
        Some(rustix::io::Errno::NOMEM) => NoRecords::NoLockedMemory,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => NoRecords::NoDescriptors,
        Some(rustix::io::Errno::NOSYS) => NoRecords::NotBuilt,
        _ => NoRecords::Failed(error.to_string()),
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
