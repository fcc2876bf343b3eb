//! Records of context switches by perf events.

use std::collections::BTreeSet;
use std::io;

use chase::counters::switches::{Record, Recorded, Switches, What};
use host::Source;
use model::placement::NoRecords;
use process::tree;

/// Threads that start while others are attached to are found in so many passes.
const PASSES: usize = 16;

/// All threads of a process that runs and of those that descend from it, and who they are. Some start during this: those that a
/// recorded thread started are recorded already, and their start is among the records.
pub(crate) fn of_running(source: &Source, pid: u32, cpus: &[u32]) -> io::Result<(Switches, BTreeSet<(u32, u32)>)> {
    let mut switches = Switches::of(number(pid), cpus, Recorded::Switches)?;
    let mut known = BTreeSet::from([(pid, pid)]);
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..PASSES {
        let found: BTreeSet<(u32, u32)> = tree::threads(source, tree::of(source, pid).pids).collect();
        // The record of a start comes after the thread can be seen.
        std::thread::sleep(std::time::Duration::from_millis(1));
        switches.drain(&mut records);
        let started = records.iter().filter(|record| record.what == What::Fork);
        let inherited: BTreeSet<(u32, u32)> = started.map(|record| (record.pid, record.tid)).collect();
        let is_new = |thread: &&(u32, u32)| !inherited.contains(thread);
        let new: Vec<_> = found.difference(&known).filter(is_new).copied().collect();
        for &(_, tid) in &new {
            switches.add(number(tid))?;
        }
        known.extend(found);
        if new.is_empty() {
            break;
        }
    }
    Ok((switches, known))
}

fn number(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
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
