//! Arguments of `placement` as typed. Their doc comments are the help texts and the man page.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};

/// Where programs run.
#[derive(Debug, Subcommand)]
pub enum Placement {
    /// Record on which CPUs a program runs, and how often it moves
    ///
    /// Reports the share of time on each CPU, moves by kind (SMT sibling, same cache, other core, other socket, other
    /// node), waits, and CPU steal, for each thread and in total. Forks and threads are followed. Needs no root where
    /// kernel.perf_event_paranoid is 2 or less: the kernel records every context switch. Elsewhere /proc is read 100
    /// times a second, and moves are a lower bound. The result names the method, and counts what may be missing. The
    /// program's output goes to standard error. Processes that it leaves running are ended.
    Record(Record),
    /// Report what differs between recordings of `placement record --json`
    ///
    /// Splits the difference of throughput into CPU time in each second and work for each CPU second. Shows moves,
    /// preemptions and locality beside them, and prints what weakens the comparison. Separate the runs of one side by
    /// commas, in order of time. From two runs on there is a 95 % CI. With --published, prints a published study and
    /// what follows from its tables.
    Diff(PlacementDiff),
    /// Find incorrect pinning, and print the lines that fix it
    ///
    /// Observes every thread for a second and reports busy threads on one core while another is idle, pinning that does
    /// not hold, virtual CPUs on siblings or on two nodes, memory on another node than the CPUs, and cpusets that do
    /// not get their CPUs. Changes nothing. With --root it reads a capture, which has the threads of busy and pinned
    /// processes and of VMs. Exit codes: 0 nothing is wrong; 1 something is; 2 not done.
    Check(PlacementCheck),
}

/// Arguments of `hugewise placement diff`.
#[derive(Args, Clone, Debug)]
pub struct PlacementDiff {
    /// Compare these recordings
    #[arg(value_name = "A.json,..", required_unless_present = "published", requires = "after")]
    pub before: Option<String>,
    /// With these
    #[arg(value_name = "B.json,..")]
    pub after: Option<String>,
    /// Give the work that each recording did, in order, such as 8527,10042 [default: all did the same]
    #[arg(long, value_delimiter = ',', value_name = "N,..")]
    pub work: Vec<f64>,
    /// Print a published study: ibm-2006
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["before", "after", "work"], value_parser = ["ibm-2006"])]
    pub published: Option<String>,
}

/// Arguments of `hugewise placement check`.
#[derive(Args, Clone, Debug)]
pub struct PlacementCheck {
    /// Check this process and its descendants, or all processes
    #[arg(value_name = "PID|all", default_value = "all")]
    pub target: String,
}

/// Arguments of `hugewise placement record`.
#[derive(Args, Clone, Debug)]
pub struct Record {
    /// Record this process and its descendants, until it ends or Ctrl-C
    #[arg(
        long,
        value_name = "PID",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub pid: Option<u32>,
    /// Record for at most this long, such as 10s [default: until the program ends]
    #[arg(long = "for", value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub time: Option<Duration>,
    /// Read the clocks of each CPU periodically instead of recording every context switch
    ///
    /// For programs that switch often. A kernel clock counts the time on each CPU. It loses time of threads that move
    /// often: half of it at 16,000 moves per second. Only moves are recorded, as root or at kernel.perf_event_paranoid
    /// of 1 or less. Runs, preemptions and waits are not known; times of single threads come from /proc.
    #[arg(long)]
    pub light: bool,
    /// Start this program and record it until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
