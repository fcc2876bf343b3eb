//! The shape of a recording of where a program ran: time by CPU, moves by kind, waits, and what the recording may have missed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

mod check;
mod diff;
mod published;

pub use check::{Check, Fix, FixWith, Mispinned, Mistake};
pub use diff::{Caveat, Diff, Part, Quantity, Side};
pub use published::{Published, PublishedRun, ibm_2006};

/// Where one program ran, with all that it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// What was recorded.
    pub target: Target,
    /// How.
    pub method: Method,
    /// Was each move recorded? With records of switches always, whatever this says.
    #[serde(default)]
    pub all_moves: bool,
    /// Why not by switch records, where it was another method.
    pub no_records: Option<NoRecords>,
    /// `kernel.perf_event_paranoid` then; unknown of older recordings, and where it could not be read.
    #[serde(default)]
    pub perf_event_paranoid: Option<i64>,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Why it ended.
    pub end: End,
    /// The CPUs of the machine, in order.
    pub cpus: Vec<Cpu>,
    /// All threads together.
    pub total: Tally,
    /// The threads with the most CPU time, the first ones first.
    pub threads: Vec<Thread>,
    /// Threads that are in the total only.
    pub others: u64,
    /// Memory by NUMA node in bytes, when it was last read; empty on a machine with one node.
    pub memory: BTreeMap<u32, u64>,
    /// Shares of time and moves in equal slices of the recording.
    pub slices: Slices,
    /// What may be missing.
    pub missed: Missed,
    /// CPU seconds by the kernel's own account (rusage) of a program that was started here and has ended.
    pub rusage_s: Option<f64>,
    /// What that has more than the recording: context switches themselves, the ends of processes, and all that came after the kernel
    /// ended the recording (the warning `recording-cut-off`).
    pub unassigned_s: Option<f64>,
    /// CPU seconds that hugewise used while it recorded.
    pub recorder_s: f64,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The program and its arguments, if it was started here.
    pub command: Vec<String>,
}

/// How a recording was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Every context switch, recorded by the kernel (`PERF_RECORD_SWITCH`).
    SwitchRecords,
    /// A clock of the kernel for each CPU (`TASK_CLOCK`) gives the time of all threads together. Their moves are recorded where that is
    /// permitted. Single threads are read from /proc at an interval.
    Clocks,
    /// /proc/PID/task/TID/stat and schedstat, read at an interval: moves are a lower bound.
    Procfs,
}

/// Why the kernel did not record switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoRecords {
    /// The user did not want it.
    NotWanted,
    /// `kernel.perf_event_paranoid` or a filter of system calls does not permit it.
    NotPermitted,
    /// This user may record own processes, and not that one.
    OtherUser,
    /// This user may lock no more memory for records.
    NoLockedMemory,
    /// There are fewer descriptors than threads times CPUs.
    NoDescriptors,
    /// This kernel is without perf events.
    NotBuilt,
    /// The kernel's error.
    Failed(String),
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It goes on: this is what was recorded so far.
    SoFar,
    /// The program exited with this code.
    Exited(i32),
    /// A signal killed the program.
    Killed(i32),
    /// The process that was attached to has ended.
    Gone,
    /// Its time was over.
    TimeOver,
    /// The user stopped it.
    Interrupted,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Its core's number inside the package, where known.
    pub core: Option<i64>,
    /// Its package (socket), where known.
    pub package: Option<i64>,
    /// Its NUMA node, where known.
    pub node: Option<u32>,
    /// Seconds that the hypervisor withheld from it during this, whatever ran on it.
    pub steal_s: Reading<f64>,
}

/// What one thread did, or several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Seconds on each CPU; those without time are left out.
    pub cpu_s: BTreeMap<u32, f64>,
    /// Moves from one CPU to another.
    pub migrations: Migrations,
    /// How often it got a CPU; by procfs not known.
    pub runs: Option<u64>,
    /// How often it lost a CPU while it could have gone on.
    pub preemptions: Option<u64>,
    /// Seconds between losing a CPU so and getting one again.
    pub preempted_s: Option<f64>,
    /// Seconds on run queues for whatever reason, when last read (schedstat).
    pub queued_s: Option<f64>,
}

/// Moves by how far they went; each is in the farthest class that it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Migrations {
    /// To the other thread of the same core.
    pub smt_sibling: u64,
    /// To another core at the same last-level cache.
    pub same_llc: u64,
    /// To another core of the package.
    pub other_core: u64,
    /// To another package (socket).
    pub other_socket: u64,
    /// To another NUMA node.
    pub other_node: u64,
    /// The topology of one of the CPUs is not known.
    pub unknown: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// What it did.
    pub tally: Tally,
}

/// A recording cut into equal slices of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Seconds of one slice.
    pub seconds: f64,
    /// Seconds on each CPU, slice by slice.
    pub cpu_s: Vec<BTreeMap<u32, f64>>,
    /// Moves, slice by slice.
    pub migrations: Vec<u64>,
}

/// What a recording may lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// Records that the kernel could not keep.
    pub lost_records: u64,
    /// Records whose counterpart is missing.
    pub unpaired: u64,
    /// Moves that the kernel counted and this recording did not see, where that is known.
    pub migrations: Option<u64>,
    /// CPUs that came online during this, on which nothing was recorded.
    pub new_cpus: u64,
}

impl Migrations {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.each().iter().map(|(_, count)| count).sum()
    }

    /// Each kind with its name in results, the nearest first.
    pub fn each(&self) -> [(Kind, u64); 6] {
        [
            (Kind::SmtSibling, self.smt_sibling),
            (Kind::SameLlc, self.same_llc),
            (Kind::OtherCore, self.other_core),
            (Kind::OtherSocket, self.other_socket),
            (Kind::OtherNode, self.other_node),
            (Kind::Unknown, self.unknown),
        ]
    }

    /// Those that came since an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for ((kind, now), (_, before)) in self.each().into_iter().zip(earlier.each()) {
            since.add(kind, now.saturating_sub(before));
        }
        since
    }

    /// Counts one.
    pub fn add(&mut self, kind: Kind, count: u64) {
        let of = match kind {
            Kind::SmtSibling => &mut self.smt_sibling,
            Kind::SameLlc => &mut self.same_llc,
            Kind::OtherCore => &mut self.other_core,
            Kind::OtherSocket => &mut self.other_socket,
            Kind::OtherNode => &mut self.other_node,
            Kind::Unknown => &mut self.unknown,
        };
        *of += count;
    }
}

/// How far a move went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// To the other thread of the same core.
    SmtSibling,
    /// To another core at the same last-level cache.
    SameLlc,
    /// To another core of the package.
    OtherCore,
    /// To another package.
    OtherSocket,
    /// To another NUMA node.
    OtherNode,
    /// Not known.
    Unknown,
}

crate::shown_by_name!(Kind, Method, Mistake, Caveat);

impl Kind {
    /// All that are known, the nearest first.
    pub const KNOWN: [Self; 5] = [
        Self::SmtSibling,
        Self::SameLlc,
        Self::OtherCore,
        Self::OtherSocket,
        Self::OtherNode,
    ];
}

impl Tally {
    /// CPU seconds.
    pub fn cpu(&self) -> f64 {
        self.cpu_s.values().sum()
    }

    /// Adds another one. What is not known of either is not known of both.
    pub fn add(&mut self, other: &Self) {
        for (&cpu, seconds) in &other.cpu_s {
            *self.cpu_s.entry(cpu).or_default() += seconds;
        }
        for (kind, count) in other.migrations.each() {
            self.migrations.add(kind, count);
        }
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        self.runs = both(self.runs, other.runs);
        self.preemptions = both(self.preemptions, other.preemptions);
        self.preempted_s = self.preempted_s.zip(other.preempted_s).map(|(one, other)| one + other);
        // Short threads end before they can be read.
        self.queued_s = [self.queued_s, other.queued_s]
            .into_iter()
            .flatten()
            .reduce(|one, other| one + other);
    }
}

impl Method {
    /// Did recording end long before the program, by its CPU seconds on record and by rusage? The kernel ends it where a program
    /// becomes one that its user may not read: at an exec of a setuid file, of one with capabilities, or of one without the right to read.
    pub fn is_cut_off(self, recorded_s: f64, rusage_s: f64, threads: u64, moves: u64) -> bool {
        let rest = rusage_s - recorded_s;
        match self {
            // The end of a thread, a few hundredths of a millisecond, comes after its last record.
            Self::SwitchRecords => rest > 0.01 + 0.05 * rusage_s + 0.002 * threads as f64,
            // They lose two hundredths of a millisecond at a move, and so most of a time in which threads move all the while.
            Self::Clocks => rest > 0.01 + (0.25 * rusage_s + 1e-4 * moves as f64).min(0.9 * rusage_s),
            // What is read of /proc does not end so.
            Self::Procfs => false,
        }
    }
}

impl Recording {
    /// Is every move counted, and not only those that readings of /proc show?
    pub fn has_all_moves(&self) -> bool {
        (self.all_moves || self.method == Method::SwitchRecords) && !self.is_cut_off()
    }

    /// Did recording end before the program did ([`Method::is_cut_off`])? Records that were lost explain a lack likewise.
    pub fn is_cut_off(&self) -> bool {
        let threads = self.threads.len() as u64 + self.others;
        let moves = self.total.migrations.total();
        let is_short = |usage: f64| self.method.is_cut_off(self.total.cpu(), usage, threads, moves);
        self.missed.lost_records == 0 && self.rusage_s.is_some_and(is_short)
    }

    /// CPU seconds in each second: 1 is one whole CPU.
    pub fn cpus_used(&self) -> f64 {
        ratio(self.total.cpu(), self.seconds)
    }

    /// The share of CPU time on each node.
    pub fn node_shares(&self) -> BTreeMap<u32, f64> {
        let mut shares = BTreeMap::new();
        let all = self.total.cpu();
        for cpu in &self.cpus {
            let seconds = self.total.cpu_s.get(&cpu.cpu).copied().unwrap_or_default();
            if let Some(node) = cpu.node {
                *shares.entry(node).or_insert(0.0) += ratio(seconds, all);
            }
        }
        shares
    }

    /// The chance that a second of CPU time and a byte of memory are on the same node; `None` where memory by node was not read.
    pub fn locality(&self) -> Option<f64> {
        let all: u64 = self.memory.values().sum();
        let shares = self.node_shares();
        let share = |(node, bytes): (&u32, &u64)| shares.get(node).unwrap_or(&0.0) * *bytes as f64 / all as f64;
        (all > 0 && !shares.is_empty()).then(|| self.memory.iter().map(share).sum())
    }
}

/// Nothing of nothing is nothing.
fn ratio(over: f64, under: f64) -> f64 {
    if under > 0.0 { over / under } else { 0.0 }
}

#[cfg(test)]
#[path = "placement/tests.rs"]
mod tests;
