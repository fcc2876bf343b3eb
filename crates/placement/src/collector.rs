//! Collects where a program runs while others measure it: time by CPU, moves by kind and waits on run queues. The kernel adds up the
//! time and records moves alone, so that a context switch costs the program little and this process nothing.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

use chase::counters::residency::Residency;
use chase::counters::switches::{Record, Totals, What, now};
use host::threads::times;
use host::{Distances, Source};
use model::compare::Ran;
use model::placement::{Kind, Migrations};
use process::{Process, cpu_time, tree};

/// A record may come to its ring later than another of the same moment to another ring, if the CPU was taken from this machine
/// between its clock and its ring.
pub(crate) const LAG: u64 = 250_000_000;
/// Each thread that a program starts takes two events for each CPU, about a microsecond each: beyond so many CPUs starting threads
/// would cost what is measured.
pub const MOST_CPUS: usize = 64;
/// Threads whose waits are read at a look.
const MOST_THREADS: usize = 256;
/// The pause after a look is at least so many times as long as the look.
const LOOK: u32 = 200;

/// Of one program, from its start on.
pub struct Collector {
    source: Source,
    pid: u32,
    residency: Residency,
    moves: Moves,
    /// Nanoseconds on run queues of each thread, when last read.
    queued: BTreeMap<u32, u64>,
    due: Instant,
    taken: Taken,
    /// Moves that [`Collector::moved`] has given.
    moved: u64,
}

/// What was taken so far.
#[derive(Default)]
struct Taken {
    cpu: BTreeMap<u32, u64>,
    migrations: Option<Migrations>,
    queued: Option<u64>,
}

/// Moves of threads by their records. Pure.
struct Moves {
    distances: Distances,
    cpus: Vec<u32>,
    pending: Vec<Record>,
    /// Where each thread was last, as far as that is known.
    last: HashMap<u32, u32>,
    migrations: Migrations,
    /// Are some missing?
    has_gaps: bool,
}

impl Collector {
    /// Of a program that was started with `Order::places`; `None` if it was not.
    ///
    /// # Errors
    /// The kernel's, if it does not count the program's time.
    pub fn of(process: &mut Process, cpus: &[u32], distances: &Distances) -> Option<io::Result<Self>> {
        let residency = process.recorders().residency.take()?;
        let pid = process.id();
        Some(residency.map(|residency| Self::new(pid, residency, (cpus, distances))))
    }

    /// Of a process that runs, with all its threads and descendants, from now on. Waits are those since their start.
    ///
    /// # Errors
    /// As of [`Collector::of`].
    pub fn of_running(pid: u32, cpus: &[u32], distances: &Distances) -> io::Result<Self> {
        let source = Source::live();
        let threads = tree::threads(&source, tree::of(&source, pid).pids);
        let tids: Vec<u32> = threads.map(|(_, tid)| tid).collect();
        let residency = Residency::of_running(&tids, cpus)?;
        Ok(Self::new(pid, residency, (cpus, distances)))
    }

    fn new(pid: u32, residency: Residency, (cpus, distances): (&[u32], &Distances)) -> Self {
        Self {
            source: Source::live(),
            pid,
            residency,
            moves: Moves::new(cpus, distances),
            queued: BTreeMap::new(),
            due: Instant::now(),
            taken: Taken::default(),
            moved: 0,
        }
    }

    /// CPU time of the program before its moves were recorded: that of opening the clocks.
    pub fn used_before(&self) -> Duration {
        self.residency.used_before()
    }

    /// Records of moves that found no room so far.
    pub fn lost(&mut self) -> u64 {
        self.residency.totals().lost
    }

    /// How often its threads moved since this was last asked, or from the start, if that is known.
    pub fn moved(&mut self) -> Option<u64> {
        let moves = self.residency.totals().moves;
        self.moved_by(moves)
    }

    fn moved_by(&mut self, now: Option<u64>) -> Option<u64> {
        let now = now?;
        Some(now.saturating_sub(std::mem::replace(&mut self.moved, now)))
    }

    /// Reads how long threads waited on run queues so far, if it did not do so a moment ago. Those that started and ended since the
    /// last look are missed.
    pub fn look(&mut self) {
        if Instant::now() >= self.due {
            let before = cpu_time();
            self.look_now();
            self.due = Instant::now() + Duration::from_millis(1).max((cpu_time() - before) * LOOK);
        }
    }

    /// Likewise, whenever it did so last.
    pub fn look_now(&mut self) {
        let threads = tree::threads(&self.source, tree::of(&self.source, self.pid).pids);
        let threads: Vec<_> = threads.take(MOST_THREADS).collect();
        threads.into_iter().for_each(|thread| self.read_waits(thread));
    }

    /// Of a program that has ended and was not waited for yet: its first thread can be read until then, and with it those that the
    /// program left behind.
    pub fn look_last(&mut self, process: &Process) {
        match process.has_left_none() {
            true => self.read_waits((self.pid, self.pid)),
            false => self.look_now(),
        }
    }

    fn read_waits(&mut self, (pid, tid): (u32, u32)) {
        if let Some([_, queued]) = times(&self.source, pid, tid) {
            self.queued.insert(tid, queued);
        }
    }

    /// Seconds on each CPU from the start until it was last taken.
    pub(crate) fn cpu_s(&self) -> BTreeMap<u32, f64> {
        let used = self.taken.cpu.iter().filter(|(_, ns)| **ns > 0);
        used.map(|(&cpu, &ns)| (cpu, seconds(ns))).collect()
    }

    /// Likewise its moves, where all are recorded.
    pub(crate) fn migrations(&self) -> Option<Migrations> {
        self.taken.migrations
    }

    /// What came since it was last taken, or from the start, of a program that is stopped or has ended.
    pub fn take(&mut self) -> Ran {
        self.take_until(u64::MAX).0
    }

    /// Likewise of one that runs. Its last moves come later: while the ring of one CPU is read, a thread may come to it from another.
    pub fn take_so_far(&mut self) -> Ran {
        self.take_until(now().saturating_sub(LAG)).0
    }

    /// Of a program that has ended, by one reading: what [`Collector::take`] and [`Collector::moved`] give.
    pub fn take_all(&mut self) -> (Ran, Option<u64>) {
        let (ran, moves) = self.take_until(u64::MAX);
        (ran, self.moved_by(moves))
    }

    /// With the number of all moves so far, if that is known.
    fn take_until(&mut self, until: u64) -> (Ran, Option<u64>) {
        let is_recorded = self.residency.drain(&mut self.moves.pending);
        let Totals { cpu, lost, moves } = self.residency.totals();
        self.moves.has_gaps |= lost > 0;
        self.moves.take_until(until);
        let migrations = (is_recorded && !self.moves.has_gaps).then_some(self.moves.migrations);
        let queued = (!self.queued.is_empty()).then(|| self.queued.values().sum::<u64>());
        let before = std::mem::replace(
            &mut self.taken,
            Taken {
                cpu: cpu.clone(),
                migrations,
                queued,
            },
        );
        let since = |(cpu, ns): (u32, u64)| (cpu, ns.saturating_sub(before.cpu.get(&cpu).copied().unwrap_or(0)));
        let ran = cpu.into_iter().map(since).filter(|(_, ns)| *ns > 0);
        let ran = Ran {
            cpu_s: ran.map(|(cpu, ns)| (cpu, seconds(ns))).collect(),
            migrations: migrations.map(|now| now.since(&before.migrations.unwrap_or_default())),
            queued_s: queued.map(|now| seconds(now.saturating_sub(before.queued.unwrap_or(0)))),
        };
        (ran, moves)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Records up to a moment, in the order of time, whichever ring they came from.
pub(crate) fn drain_until(pending: &mut Vec<Record>, until: u64) -> impl Iterator<Item = Record> {
    pending.sort_by_key(|record| record.at);
    let ready = pending.partition_point(|record| record.at <= until);
    pending.drain(..ready)
}

impl Moves {
    fn new(cpus: &[u32], distances: &Distances) -> Self {
        Self {
            distances: distances.clone(),
            cpus: cpus.to_vec(),
            pending: Vec::new(),
            last: HashMap::new(),
            migrations: Migrations::default(),
            has_gaps: false,
        }
    }

    fn take_until(&mut self, until: u64) {
        let ready: Vec<Record> = drain_until(&mut self.pending, until).collect();
        ready.iter().for_each(|record| self.take(record));
    }

    fn take(&mut self, record: &Record) {
        match record.what {
            What::Moved => {
                let kind = match self.last.insert(record.tid, record.cpu) {
                    Some(from) if from == record.cpu => return,
                    Some(from) => self.distances.kind(from, record.cpu),
                    None => self.kind_to(record.cpu),
                };
                self.migrations.add(kind, 1);
            }
            // A thread names itself where it runs. Where it started, no record has.
            What::Name(_) => {
                self.last.insert(record.tid, record.cpu);
            }
            What::Exit => {
                self.last.remove(&record.tid);
            }
            What::Throttled => self.has_gaps = true,
            _ => {}
        }
    }

    /// Of a move from a CPU that is not known: where all CPUs are equally far, that does not matter.
    fn kind_to(&self, to: u32) -> Kind {
        let others = self.cpus.iter().filter(|&&cpu| cpu != to);
        let mut kinds = others.map(|&from| self.distances.kind(from, to));
        let first = kinds.next().unwrap_or(Kind::Unknown);
        if kinds.all(|kind| kind == first) {
            first
        } else {
            Kind::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use chase::counters::switches::{Record, What};
    use host::{Distances, Snapshot, Source};
    use model::placement::Kind;

    use super::Moves;

    fn moves(fixture: &str) -> (Moves, Distances, Vec<u32>) {
        let path = format!("{}/../../fixtures/machines/{fixture}.tree", env!("CARGO_MANIFEST_DIR"));
        let topology = Snapshot::take(&Source::open(path.as_ref()).expect("a machine")).topology;
        let distances = Distances::of(&topology);
        let cpus: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.cpu).collect();
        (Moves::new(&cpus, &distances), distances, cpus)
    }

    fn record(tid: u32, cpu: u32, what: What) -> Record {
        Record {
            at: 0,
            cpu,
            pid: tid,
            tid,
            what,
        }
    }

    #[test]
    fn a_move_is_counted_by_where_the_thread_was_before() {
        let (mut moves, distances, cpus) = moves("two-node-smt");
        let far = cpus
            .iter()
            .find(|&&cpu| distances.kind(cpus[0], cpu) == Kind::OtherNode);
        let far = *far.expect("two nodes");
        moves.take(&record(7, cpus[0], What::Name("a".to_owned())));
        moves.take(&record(7, far, What::Moved));
        moves.take(&record(7, far, What::Moved));
        moves.take(&record(7, cpus[0], What::Moved));
        assert_eq!((moves.migrations.other_node, moves.migrations.total()), (2, 2));
        // One of the same number, from where is not known.
        moves.take(&record(7, far, What::Exit));
        moves.take(&record(7, far, What::Moved));
        assert_eq!((moves.migrations.unknown, moves.migrations.total()), (1, 3));
    }

    /// Of two rings that are read one after the other, the second may have records that are later than some that are yet to be read.
    #[test]
    fn records_that_come_late_are_put_where_they_belong() {
        let (mut moves, _, cpus) = moves("two-node-smt");
        let at = |at, cpu: usize| Record {
            at,
            ..record(7, cpus[cpu], What::Moved)
        };
        moves.take(&record(7, cpus[0], What::Name("a".to_owned())));
        moves.pending = vec![at(2, 0), at(1, 1), at(3, 1)];
        moves.take_until(1);
        assert_eq!((moves.migrations.total(), moves.pending.len()), (1, 2));
        moves.pending.push(at(4, 0));
        moves.take_until(u64::MAX);
        assert_eq!((moves.migrations.total(), moves.pending.len()), (4, 0));
    }

    #[test]
    fn where_all_cpus_are_equally_far_a_move_from_anywhere_has_a_kind() {
        let (mut moves, distances, cpus) = moves("two-node-smt");
        moves.cpus = vec![cpus[0], cpus[1]];
        let kind = distances.kind(cpus[1], cpus[0]);
        moves.take(&record(8, cpus[0], What::Moved));
        let counted = moves.migrations.each().into_iter().find(|(_, count)| *count == 1);
        assert_eq!(counted.map(|(kind, _)| kind), Some(kind));
        assert!(kind != Kind::Unknown);
    }
}
