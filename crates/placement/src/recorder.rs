//! Keeps the accounts of one program while it runs: by records of switches, or by looking at its threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use chase::counters::switches::{Record, Switches, What, now};
use host::{Distances, Snapshot, Source};
use model::placement::NoRecords;
use process::{cpu_time, tree};

use crate::ledger::Ledger;
use crate::poll;

/// A record may come to its ring later than another of the same moment to another ring, if the CPU was taken from this machine
/// between its clock and its ring.
const LAG: u64 = 250_000_000;
/// Between two drains of the rings.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);
/// Between two looks at all threads, where they are all that there is.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// Threads that start while others are attached to are found in so many passes.
const PASSES: usize = 16;

/// The recorder of one program.
pub(crate) struct Recorder {
    source: Source,
    pub(crate) ledger: Ledger,
    pub(crate) by: By,
    /// When everything begins to count.
    pub(crate) began: u64,
}

/// How it learns what threads do.
pub(crate) enum By {
    Records {
        switches: Box<Switches>,
        pending: Vec<Record>,
        period: Duration,
    },
    Looks {
        why: NoRecords,
        last: BTreeMap<u32, Look>,
        /// Moves by the kernel's own count.
        counted: Option<u64>,
    },
}

/// A thread as it was looked at last.
pub(crate) struct Look {
    ran: u64,
    migrations: Option<u64>,
}

impl Recorder {
    /// Of a program that was just started, with its records if there are any.
    pub(crate) fn of_started(snapshot: &Snapshot, pid: u32, records: Result<Switches, NoRecords>) -> Self {
        let mut recorder = Self::new(snapshot, records);
        let name = poll::thread(&recorder.source, pid, pid).map_or_else(String::new, |seen| seen.name);
        if matches!(recorder.by, By::Records { .. }) {
            recorder.ledger.add(pid, pid, &name);
        }
        recorder
    }

    /// Of a process that runs, with all that descends from it.
    pub(crate) fn of_running(snapshot: &Snapshot, pid: u32, wants_records: bool) -> Self {
        let cpus: Vec<u32> = snapshot.topology.cpus.iter().map(|cpu| cpu.cpu).collect();
        let source = Source::live();
        let attached = if wants_records {
            attach(&source, pid, &cpus)
                .map_err(|error| refusal(&error, || Switches::of(0, cpus.get(..1).unwrap_or_default()).is_ok()))
        } else {
            Err(NoRecords::NotWanted)
        };
        match attached {
            Err(why) => {
                let mut recorder = Self::new(snapshot, Err(why));
                recorder.look(pid, true);
                recorder
            }
            Ok((switches, threads)) => {
                let mut recorder = Self::new(snapshot, Ok(switches));
                for (pid, tid) in threads {
                    let name = poll::thread(&source, pid, tid).map_or_else(String::new, |seen| seen.name);
                    recorder.ledger.add(pid, tid, &name);
                }
                recorder
            }
        }
    }

    fn new(snapshot: &Snapshot, records: Result<Switches, NoRecords>) -> Self {
        let (began, by) = match records {
            Ok(switches) => {
                let (pending, period) = (Vec::new(), SHORTEST);
                let began = switches.began();
                let switches = Box::new(switches);
                let by = By::Records {
                    switches,
                    pending,
                    period,
                };
                (began, by)
            }
            Err(why) => {
                let (last, counted) = (BTreeMap::new(), None);
                (now(), By::Looks { why, last, counted })
            }
        };
        Self {
            source: Source::live(),
            ledger: Ledger::new(began, Distances::of(&snapshot.topology)),
            by,
            began,
        }
    }

    /// CPU time of the program before it was recorded.
    pub(crate) fn used_before(&self) -> Duration {
        match &self.by {
            By::Records { switches, .. } => switches.used_before(),
            By::Looks { .. } => Duration::ZERO,
        }
    }

    pub(crate) fn has_records(&self) -> bool {
        matches!(self.by, By::Records { .. })
    }

    /// Takes what there is, and gives the pause until the next time.
    pub(crate) fn tick(&mut self, pid: u32) -> Duration {
        if self.has_records() {
            return self.drain(now().saturating_sub(LAG));
        }
        let before = cpu_time();
        self.look(pid, false);
        // What it costs is a twentieth of one CPU at most.
        LOOK.max((cpu_time().saturating_sub(before)) * 20)
    }

    /// Takes all that is left.
    pub(crate) fn finish(&mut self) {
        if self.has_records() {
            self.drain(u64::MAX);
        }
    }

    fn drain(&mut self, until: u64) -> Duration {
        let By::Records {
            switches,
            pending,
            period,
        } = &mut self.by
        else {
            return LOOK;
        };
        let full = switches.drain(pending);
        *period = match full {
            full if full > 0.25 => (*period / 2).max(SHORTEST),
            full if full < 0.06 => (*period * 2).min(LONGEST),
            _ => *period,
        };
        pending.sort_by_key(|record| record.at);
        let ready = pending.partition_point(|record| record.at <= until);
        for record in pending.drain(..ready) {
            self.ledger.take(&record);
        }
        *period
    }

    /// Reads where each thread is, and how long it ran since, or before the first look.
    fn look(&mut self, pid: u32, is_first: bool) {
        let By::Looks { last, counted, .. } = &mut self.by else {
            return;
        };
        let mut there = BTreeSet::new();
        for pid in tree::of(&self.source, pid).pids {
            for tid in tree::tasks(&self.source, pid) {
                let Some(seen) = poll::thread(&self.source, pid, tid) else {
                    continue;
                };
                let Some([ran, queued]) = poll::times(&self.source, pid, tid) else {
                    continue;
                };
                there.insert(tid);
                let migrations = poll::migrations(&self.source, pid, tid);
                if !self.ledger.has(tid) {
                    self.ledger.add(pid, tid, &seen.name);
                    // All that a thread did counts, if it was started since the beginning.
                    let (ran, migrations) = if is_first { (ran, migrations) } else { (0, Some(0)) };
                    last.insert(tid, Look { ran, migrations });
                }
                let Some(look) = last.get_mut(&tid) else { continue };
                if let Some((new, old)) = migrations.zip(look.migrations) {
                    *counted = Some(counted.unwrap_or(0) + new.saturating_sub(old));
                }
                if ran > look.ran {
                    self.ledger.seen(tid, seen.cpu, ran - look.ran, now());
                }
                *look = Look { ran, migrations };
                if let Some(account) = self.ledger.of(tid) {
                    account.queued = Some(queued);
                }
            }
        }
        for (_, tid) in self.ledger.alive().into_iter().filter(|(_, tid)| !there.contains(tid)) {
            self.ledger.exit(tid, None, now());
            last.remove(&tid);
        }
    }

    /// Reads how long each thread waited on run queues; those that end before are not known.
    pub(crate) fn read_queues(&mut self, before: &BTreeMap<u32, u64>) {
        for (pid, tid) in self.ledger.alive() {
            if let (Some([_, queued]), Some(account)) = (poll::times(&self.source, pid, tid), self.ledger.of(tid)) {
                account.queued = Some(queued.saturating_sub(before.get(&tid).copied().unwrap_or(0)));
            }
        }
    }

    /// Time on run queues so far, of those that are there.
    pub(crate) fn queues(&self) -> BTreeMap<u32, u64> {
        let alive = self.ledger.alive().into_iter();
        let of = |(pid, tid)| Some((tid, poll::times(&self.source, pid, tid)?[1]));
        alive.filter_map(of).collect()
    }
}

/// All threads of a process and of those that descend from it. Some start meanwhile: those that a recorded thread started are
/// recorded already, and their start is among the records.
fn attach(source: &Source, pid: u32, cpus: &[u32]) -> io::Result<(Switches, BTreeSet<(u32, u32)>)> {
    let list = || -> BTreeSet<(u32, u32)> {
        let pids = tree::of(source, pid).pids.into_iter();
        pids.flat_map(|pid| tree::tasks(source, pid).into_iter().map(move |tid| (pid, tid)))
            .collect()
    };
    let number = |tid: u32| i32::try_from(tid).unwrap_or(i32::MAX);
    let mut switches = Switches::of(number(pid), cpus)?;
    let mut known = BTreeSet::from([(pid, pid)]);
    let mut records = Vec::new();
    for _ in 0..PASSES {
        let found = list();
        // The record of a start comes after the thread can be seen.
        std::thread::sleep(Duration::from_millis(1));
        switches.drain(&mut records);
        let started = records
            .iter()
            .filter(|record| record.what == What::Fork)
            .map(|record| (record.pid, record.tid));
        let inherited: BTreeSet<(u32, u32)> = started.collect();
        let new: Vec<_> = found
            .difference(&known)
            .filter(|thread| !inherited.contains(thread))
            .copied()
            .collect();
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
mod tests {
    use std::io;

    use model::placement::NoRecords;
    use rustix::io::Errno;

    use super::refusal;

    #[test]
    fn each_error_of_perf_events_says_what_to_do() {
        let of = |errno: Errno| refusal(&io::Error::from(errno), || false);
        assert_eq!(
            [of(Errno::ACCESS), of(Errno::PERM)],
            [NoRecords::NotPermitted, NoRecords::NotPermitted]
        );
        let foreign = refusal(&io::Error::from(Errno::ACCESS), || true);
        assert_eq!(
            [foreign, of(Errno::NOMEM)],
            [NoRecords::OtherUser, NoRecords::NoLockedMemory]
        );
        assert_eq!(
            [of(Errno::MFILE), of(Errno::NOSYS)],
            [NoRecords::NoDescriptors, NoRecords::NotBuilt]
        );
        assert!(matches!(of(Errno::INVAL), NoRecords::Failed(why) if why.contains("nvalid")));
    }
}
