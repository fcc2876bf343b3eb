//! Accounts of threads from what they did, in the order of time. Pure.

use std::collections::{BTreeMap, HashMap};

use chase::counters::switches::{Record, What};
use host::Distances;
use model::placement::{Migrations, Tally, Thread};

use crate::slices::Slices;

/// Threads that are kept apart in a result.
pub(crate) const SHOWN: usize = 1000;
/// Threads that have ended are summed up when there are so many of them.
const MOST_ENDED: usize = 4 * SHOWN;

#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// The moment from which on everything counts, in ns.
    began: u64,
    distances: Distances,
    threads: HashMap<u32, Account>,
    ended: Vec<Account>,
    /// The sum of those that are no longer kept apart.
    others: Account,
    folded: u64,
    slices: Slices,
    pub(crate) unpaired: u64,
}

/// What one thread did so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pid: u32,
    tid: u32,
    name: String,
    state: State,
    last: Option<u32>,
    cpu: BTreeMap<u32, u64>,
    migrations: Migrations,
    runs: u64,
    preemptions: u64,
    preempted: u64,
    /// When last read.
    pub(crate) queued: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was recorded since this moment: then it ran all the time, or not at all.
    Unknown(u64),
    Running {
        cpu: u32,
        since: u64,
    },
    Waiting {
        preempted: Option<u64>,
    },
    #[default]
    Ended,
}

impl Ledger {
    pub(crate) fn new(began: u64, distances: Distances) -> Self {
        Self {
            began,
            distances,
            threads: HashMap::new(),
            ended: Vec::new(),
            others: Account::default(),
            folded: 0,
            slices: Slices::new(),
            unpaired: 0,
        }
    }

    /// A thread that was there at the beginning.
    pub(crate) fn add(&mut self, pid: u32, tid: u32, name: &str) {
        let state = State::Unknown(self.began);
        self.threads
            .entry(tid)
            .or_insert_with(|| Account::new(pid, tid, name.to_owned(), state));
    }

    pub(crate) fn has(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Threads that have not ended.
    pub(crate) fn alive(&self) -> Vec<(u32, u32)> {
        self.threads.values().map(|thread| (thread.pid, thread.tid)).collect()
    }

    pub(crate) fn of(&mut self, tid: u32) -> Option<&mut Account> {
        self.threads.get_mut(&tid)
    }

    /// Takes one record. Those from before the beginning show who is there, and no more.
    pub(crate) fn take(&mut self, record: &Record) {
        let is_switch = matches!(record.what, What::In | What::Out { .. });
        if record.at < self.began && is_switch {
            return;
        }
        match &record.what {
            What::In => self.gained(record),
            What::Out { preempted } => self.left(record, *preempted),
            What::Fork => self.forked(record),
            What::Exit => self.exit(record.tid, Some(record.cpu), record.at),
            What::Name(name) => {
                if let Some(thread) = self.threads.get_mut(&record.tid) {
                    thread.name.clone_from(name);
                }
            }
            What::Lost(_) | What::Moved | What::Throttled => {}
        }
    }

    fn gained(&mut self, record: &Record) {
        let began = self.began;
        let thread = self.thread(record.pid, record.tid);
        let mut unpaired = 0;
        match thread.state {
            State::Waiting { preempted: Some(since) } => thread.preempted += record.at.saturating_sub(since),
            State::Running { .. } => unpaired = 1,
            _ => {}
        }
        let from = thread.last.replace(record.cpu);
        thread.runs += 1;
        thread.state = State::Running {
            cpu: record.cpu,
            since: record.at,
        };
        self.unpaired += unpaired;
        self.moved(record.tid, from, record.cpu, record.at - began);
    }

    /// Counts a move, if it is one.
    fn moved(&mut self, tid: u32, from: Option<u32>, to: u32, at: u64) {
        let Some(from) = from.filter(|&from| from != to) else {
            return;
        };
        let kind = self.distances.kind(from, to);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.migrations.add(kind, 1);
        }
        self.slices.moved(at);
    }

    fn left(&mut self, record: &Record, preempted: bool) {
        let thread = self.thread(record.pid, record.tid);
        let state = std::mem::replace(
            &mut thread.state,
            State::Waiting {
                preempted: preempted.then_some(record.at),
            },
        );
        thread.preemptions += u64::from(preempted);
        let from = thread.last.replace(record.cpu);
        match state {
            State::Running { cpu, since } if cpu == record.cpu => self.ran(record.tid, cpu, since, record.at),
            // The first record since the beginning.
            State::Unknown(since) => self.ran(record.tid, record.cpu, since, record.at),
            _ => {
                self.unpaired += 1;
                self.moved(record.tid, from, record.cpu, record.at - self.began);
            }
        }
    }

    fn forked(&mut self, record: &Record) {
        let name = self
            .threads
            .get(&record.pid)
            .map_or_else(String::new, |leader| leader.name.clone());
        let state = State::Waiting { preempted: None };
        let account = Account::new(record.pid, record.tid, name, state);
        // One of that number whose end was lost.
        self.ended.extend(self.threads.insert(record.tid, account));
    }

    /// A thread has ended, on this CPU if that was recorded; its last stretch has no other end.
    pub(crate) fn exit(&mut self, tid: u32, on: Option<u32>, at: u64) {
        match (self.threads.get(&tid).map(|thread| thread.state), on) {
            (Some(State::Running { cpu, since }), _) => self.ran(tid, cpu, since, at),
            (Some(State::Unknown(since)), Some(cpu)) => self.ran(tid, cpu, since, at),
            _ => {}
        }
        if let Some(mut thread) = self.threads.remove(&tid) {
            thread.state = State::Ended;
            self.ended.push(thread);
        }
        if self.ended.len() >= MOST_ENDED {
            self.fold();
        }
    }

    /// Time on a CPU, which is a run of it where no records show it.
    pub(crate) fn ran(&mut self, tid: u32, cpu: u32, from: u64, to: u64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            *thread.cpu.entry(cpu).or_default() += to.saturating_sub(from);
        }
        self.slices
            .ran(cpu, from.saturating_sub(self.began), to.saturating_sub(self.began));
    }

    /// A thread was seen on a CPU, after it had run for so long.
    pub(crate) fn seen(&mut self, tid: u32, cpu: u32, ran: u64, now: u64) {
        let from = self.threads.get_mut(&tid).and_then(|thread| thread.last.replace(cpu));
        self.moved(tid, from, cpu, now.saturating_sub(self.began));
        self.ran(tid, cpu, now.saturating_sub(ran).max(self.began), now);
    }

    /// Likewise, of the thread alone: time and moves of all together are known better.
    pub(crate) fn seen_apart(&mut self, tid: u32, cpu: u32, ran: u64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            if let Some(from) = thread.last.replace(cpu).filter(|&from| from != cpu) {
                thread.migrations.add(self.distances.kind(from, cpu), 1);
            }
            *thread.cpu.entry(cpu).or_default() += ran;
        }
    }

    /// What all threads together did since the moment before: time on each CPU in seconds, and moves.
    pub(crate) fn clocked(&mut self, cpu_s: &BTreeMap<u32, f64>, moves: u64, now: u64) {
        let now = now.saturating_sub(self.began);
        for (&cpu, seconds) in cpu_s {
            let ran = (seconds * 1e9) as u64;
            self.slices.ran(cpu, now.saturating_sub(ran), now);
            self.slices.before(cpu, ran.saturating_sub(now));
        }
        (0..moves).for_each(|_| self.slices.moved(now));
    }

    fn thread(&mut self, pid: u32, tid: u32) -> &mut Account {
        let new = || Account::new(pid, tid, String::new(), State::Waiting { preempted: None });
        self.threads.entry(tid).or_insert_with(new)
    }

    /// Keeps those of the ended with the most time.
    fn fold(&mut self) {
        self.ended.sort_by_key(|account| std::cmp::Reverse(account.time()));
        for account in self.ended.split_off(SHOWN) {
            self.others.add(&account);
            self.folded += 1;
        }
    }

    /// Everything up to a moment: all together, the threads with the most time, how many others there are, and the slices.
    /// `runs_on` gives the CPU of a thread that has done nothing but run since the beginning.
    pub(crate) fn closed(
        &self,
        now: u64,
        runs_on: impl Fn(u32, u32) -> Option<u32>,
    ) -> (Account, Vec<Account>, u64, model::placement::Slices) {
        let mut until = self.clone();
        for thread in self.threads.values() {
            match thread.state {
                State::Running { cpu, since } => until.ran(thread.tid, cpu, since, now),
                State::Unknown(since) => {
                    if let Some(cpu) = runs_on(thread.pid, thread.tid) {
                        until.ran(thread.tid, cpu, since, now);
                    }
                }
                _ => {}
            }
        }
        let mut total = until.others.clone();
        let mut all: Vec<Account> = until.threads.into_values().chain(until.ended).collect();
        all.iter().for_each(|account| total.add(account));
        all.sort_by_key(|account| (std::cmp::Reverse(account.time()), account.tid));
        let others = until.folded + all.len().saturating_sub(SHOWN) as u64;
        all.truncate(SHOWN);
        (total, all, others, until.slices.shown())
    }
}

impl Account {
    fn new(pid: u32, tid: u32, name: String, state: State) -> Self {
        Self {
            pid,
            tid,
            name,
            state,
            ..Self::default()
        }
    }

    pub(crate) fn moves(&self) -> u64 {
        self.migrations.total()
    }

    fn time(&self) -> u64 {
        self.cpu.values().sum()
    }

    fn add(&mut self, other: &Self) {
        for (&cpu, ns) in &other.cpu {
            *self.cpu.entry(cpu).or_default() += ns;
        }
        for (kind, count) in other.migrations.each() {
            self.migrations.add(kind, count);
        }
        self.runs += other.runs;
        self.preemptions += other.preemptions;
        self.preempted += other.preempted;
        self.queued = [self.queued, other.queued]
            .into_iter()
            .flatten()
            .reduce(|one, other| one + other);
    }

    /// As results have it; without records there are no runs and preemptions.
    pub(crate) fn tally(&self, has_records: bool) -> Tally {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Tally {
            cpu_s: self.cpu.iter().map(|(&cpu, &ns)| (cpu, seconds(ns))).collect(),
            migrations: self.migrations,
            runs: has_records.then_some(self.runs),
            preemptions: has_records.then_some(self.preemptions),
            preempted_s: has_records.then(|| seconds(self.preempted)),
            queued_s: self.queued.map(seconds),
        }
    }

    pub(crate) fn thread(&self, has_records: bool) -> Thread {
        Thread {
            pid: self.pid,
            tid: self.tid,
            name: self.name.clone(),
            tally: self.tally(has_records),
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
