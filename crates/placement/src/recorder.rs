//! Keeps the accounts of one program while it runs: by records of switches, or by looking at its threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use chase::counters::switches::{Record, Switches, now};
use host::processes::Stat;
use host::threads::times;
use host::{Distances, Snapshot, Source};
use model::placement::NoRecords;
use process::{cpu_time, migrations, tree};

use crate::collector::{Collector, LAG, drain_until};
use crate::kernel::{self, may_record_own, refusal};
use crate::ledger::Ledger;
use crate::poll;

/// Between two drains of the rings.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);
/// Between two looks at all threads, where they are all that there is.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// Likewise, where clocks count the time.
const LIGHT_LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Recorder {
    source: Source,
    pub(crate) ledger: Ledger,
    pub(crate) by: By,
    /// Time on run queues of threads of a process that ran already, when it began to be recorded.
    queued_before: BTreeMap<u32, u64>,
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
        /// Of all threads together.
        clocks: Option<Box<Collector>>,
    },
}

/// A thread as it was looked at last.
pub(crate) struct Look {
    ran: u64,
    migrations: Option<u64>,
}

impl By {
    pub(crate) fn records(switches: Switches) -> Self {
        Self::Records {
            switches: Box::new(switches),
            pending: Vec::new(),
            period: SHORTEST,
        }
    }

    /// Looks at threads, with clocks as they were wanted instead of records.
    pub(crate) fn clocks(collector: Collector) -> Self {
        Self::looks(NoRecords::NotWanted, Some(Box::new(collector)))
    }

    pub(crate) fn looks(why: NoRecords, clocks: Option<Box<Collector>>) -> Self {
        Self::Looks {
            why,
            last: BTreeMap::new(),
            counted: None,
            clocks,
        }
    }
}

impl Recorder {
    /// Of a program that was just started.
    pub(crate) fn of_started(snapshot: &Snapshot, pid: u32, by: By) -> Self {
        let mut recorder = Self::new(snapshot, by);
        let name = poll::name(&recorder.source, pid, pid);
        if matches!(recorder.by, By::Records { .. }) {
            recorder.ledger.add(pid, pid, &name);
        }
        recorder
    }

    /// Of a process that runs, with all that descends from it.
    pub(crate) fn of_running(snapshot: &Snapshot, pid: u32, is_light: bool) -> Self {
        let cpus: Vec<u32> = snapshot.topology.cpus.iter().map(|cpu| cpu.cpu).collect();
        let source = Source::live();
        let refused = |error: io::Error| By::looks(refusal(&error, || may_record_own(&cpus)), None);
        let (by, threads) = if is_light {
            let collector = Collector::of_running(pid, &cpus, &Distances::of(&snapshot.topology));
            (collector.map_or_else(refused, By::clocks), BTreeSet::new())
        } else {
            match kernel::of_running(&source, pid, &cpus) {
                Ok((switches, threads)) => (By::records(switches), threads),
                Err(error) => (refused(error), BTreeSet::new()),
            }
        };
        let mut recorder = Self::new(snapshot, by);
        for (pid, tid) in threads {
            let name = poll::name(&source, pid, tid);
            recorder.ledger.add(pid, tid, &name);
            let queued = times(&source, pid, tid).map(|[_, queued]| (tid, queued));
            recorder.queued_before.extend(queued);
        }
        recorder.look(pid, true);
        recorder
    }

    fn new(snapshot: &Snapshot, by: By) -> Self {
        let began = match &by {
            By::Records { switches, .. } => switches.began,
            By::Looks { .. } => now(),
        };
        Self {
            source: Source::live(),
            ledger: Ledger::new(began, Distances::of(&snapshot.topology)),
            by,
            queued_before: BTreeMap::new(),
            began,
        }
    }

    /// CPU time of the program before it was recorded.
    pub(crate) fn used_before(&self) -> Duration {
        match &self.by {
            By::Records { switches, .. } => switches.used_before,
            By::Looks { clocks, .. } => clocks.as_ref().map_or(Duration::ZERO, |clocks| clocks.used_before()),
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
        let usual = if self.clocks().is_some() { LIGHT_LOOK } else { LOOK };
        // What it costs is a twentieth of one CPU at most.
        usual.max((cpu_time().saturating_sub(before)) * 20)
    }

    /// Clocks of all threads together, where they count the time.
    pub(crate) fn clocks(&self) -> Option<&Collector> {
        match &self.by {
            By::Looks { clocks, .. } => clocks.as_deref(),
            By::Records { .. } => None,
        }
    }

    pub(crate) fn has_all_moves(&self) -> bool {
        self.has_records() || self.clocks().and_then(Collector::migrations).is_some()
    }

    /// Records that found no room so far.
    pub(crate) fn lost(&mut self) -> u64 {
        match &mut self.by {
            By::Records { switches, .. } => switches.lost(),
            By::Looks { clocks, .. } => clocks.as_mut().map_or(0, |clocks| clocks.lost()),
        }
    }

    /// Takes what the clocks counted, and the last moves of a program that has ended.
    fn read_clocks(&mut self, has_ended: bool) {
        if let By::Looks {
            clocks: Some(clocks), ..
        } = &mut self.by
        {
            let ran = match has_ended {
                true => clocks.take(),
                false => clocks.take_so_far(),
            };
            let moves = ran.migrations.map_or(0, |migrations| migrations.total());
            self.ledger.clocked(&ran.cpu_s, moves, now());
        }
    }

    /// Takes all that is left.
    pub(crate) fn finish(&mut self) {
        if self.has_records() {
            self.drain(u64::MAX);
        }
        self.read_clocks(true);
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
        drain_until(pending, until).for_each(|record| self.ledger.take(&record));
        *period
    }

    /// Reads where each thread is, and how long it ran since, or before the first look.
    fn look(&mut self, pid: u32, is_first: bool) {
        self.read_clocks(false);
        let By::Looks {
            last, counted, clocks, ..
        } = &mut self.by
        else {
            return;
        };
        let mut there = BTreeSet::new();
        for (pid, tid) in tree::threads(&self.source, tree::of(&self.source, pid).pids) {
            let stat = Stat::of_thread(&self.source, pid, tid);
            let (Some(stat), Some([ran, queued])) = (stat, times(&self.source, pid, tid)) else {
                continue;
            };
            let Some(cpu) = stat.processor() else { continue };
            there.insert(tid);
            let migrations = migrations(&self.source, &format!("/proc/{pid}/task/{tid}"));
            if !self.ledger.has(tid) {
                self.ledger.add(pid, tid, stat.name());
                // All that a thread did counts, if it was started since the beginning.
                let (ran, migrations) = if is_first { (ran, migrations) } else { (0, Some(0)) };
                last.insert(tid, Look { ran, migrations });
            }
            let Some(look) = last.get_mut(&tid) else { continue };
            if let Some((new, old)) = migrations.zip(look.migrations) {
                *counted = Some(counted.unwrap_or(0) + new.saturating_sub(old));
            }
            match ran.saturating_sub(look.ran) {
                0 => {}
                new if clocks.is_some() => self.ledger.seen_apart(tid, cpu, new),
                new => self.ledger.seen(tid, cpu, new, now()),
            }
            *look = Look { ran, migrations };
            if let Some(account) = self.ledger.of(tid) {
                account.queued = Some(queued);
            }
        }
        for (_, tid) in self.ledger.alive().into_iter().filter(|(_, tid)| !there.contains(tid)) {
            self.ledger.exit(tid, None, now());
            last.remove(&tid);
        }
    }

    /// Reads how long each thread waited on run queues; those that end before are not known.
    pub(crate) fn read_queues(&mut self) {
        for (pid, tid) in self.ledger.alive() {
            if let (Some([_, queued]), Some(account)) = (times(&self.source, pid, tid), self.ledger.of(tid)) {
                let before = self.queued_before.get(&tid).copied().unwrap_or(0);
                account.queued = Some(queued.saturating_sub(before));
            }
        }
    }
}
