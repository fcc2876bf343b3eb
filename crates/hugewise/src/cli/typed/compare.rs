//! What was typed after `compare`, word for word; its doc comments are the help texts and the man page.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use compare::flip::Span;
use compare::metric::Asked;
use compare::place::Place;
use compare::technique::Technique;
use compare::threads::Threads;
use model::Bytes;

/// `hugewise compare`
///
/// Runs an unmodified program under several page policies, in interleaved blocks, proves from outside which pages each run
/// got, and says better, worse, no difference, or that an arm did not take effect. Arms change the program's own process only,
/// never the machine; pool pages come on loan. Exit codes: 0 done; 1 what --fail-if names; 2 could not do it; 130 stopped:
/// finished runs are kept, and --resume goes on with them.
///
/// With --live PID it is a process that runs already: its memory is flipped between base and large pages, and slices of its time
/// are compared. It is never stopped, and gets back the pages that it had, unless hugewise is killed by SIGKILL: then they stay as
/// they are. Takes root (CAP_SYS_NICE and the right to trace it) and Linux 6.7.
#[derive(Args, Debug)]
pub struct Compare {
    /// Arms, the reference first: base, system, thp-advised, thp, hugetlb-SIZE, text, or names of --arms-file
    #[arg(long, value_delimiter = ',', value_name = "ARM,..", default_value = "base,thp")]
    pub arms: Vec<String>,
    /// Arms of your own: a TOML table for each, with `like`, `kind`, `technique`, `layout`, `command`, `env`, `unset`,
    /// `before`, `after`
    #[arg(long, value_name = "FILE.toml")]
    pub arms_file: Option<PathBuf>,
    /// Places; every arm runs at each: spread (one CPU of each core), pack (one core's CPUs), pin=LIST, node:N, interleave
    #[arg(long, value_delimiter = ';', value_name = "PLACE;..")]
    pub place: Vec<Place>,
    /// How thp and hugetlb arms get their pages: switch, tunables, jvm, jemalloc,
    /// mimalloc, preload, collapse [default: by the program, and where its file does not tell, by trial]
    #[arg(long, value_name = "NAME")]
    pub technique: Option<Technique>,
    /// What is judged (may be given again): wall, cpu, user, system, memory, faults, dtlb-misses, .., or a number that the program or
    /// the load prints: NAME=REGEX[,higher|lower][,from=FILE|URL|cmd:COMMAND]; in slices, what a program prints or has `from=` is a
    /// counter, scored as its rate per CPU-second; cmd: and URL answer within 10 s [default: wall]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<Asked>,
    /// How arms take turns: `runs` starts the program anew each time; `flip` starts it once and flips its memory between base and
    /// thp, as --live does; `slices` keeps all arms alive, one running at a time, and starts all anew after four slices of each.
    /// Both take counters
    #[arg(long, value_enum, default_value = "auto")]
    pub design: Design,
    /// The smallest difference worth a verdict
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::meaning::percent, default_value = "1%")]
    pub smallest_effect: f64,
    /// So many runs of each arm (of slices, starts), whatever they show [default: as many as it takes, 30 at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: Option<u32>,
    /// Time for all runs, half of it at most for those that warm up; a server is waited for no longer
    #[arg(long, value_name = "TIME", value_parser = crate::cli::meaning::duration, default_value = "10m")]
    pub budget: Duration,
    /// Runs of each arm before the first that counts; of slices, after each start
    #[arg(long, value_name = "N", default_value = "1")]
    pub warm_up: u32,
    /// Order within blocks
    #[arg(long, value_enum, default_value = "mirrored")]
    pub order: Order,
    /// An arm is in effect if this share of the program's own memory is on its pages
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::meaning::percent, default_value = "50%")]
    pub least_coverage: f64,
    /// Take runs that end with an error, too
    #[arg(long)]
    pub ignore_failure: bool,
    /// Room in the pool for hugetlb arms [default: what the first run needs, and a quarter more]
    #[arg(long, value_name = "SIZE", conflicts_with = "no_pool")]
    pub pool: Option<Bytes>,
    /// Never take pages from a hugetlb pool beyond those that are free already
    #[arg(long)]
    pub no_pool: bool,
    /// A process that runs already: its memory is flipped in place between the arms base and thp
    #[arg(long, value_name = "PID", conflicts_with_all = LIVE_HAS_NO)]
    pub live: Option<u32>,
    /// How long a slice lasts; in one process with --load as long as the load [default: 500ms, in one process 2s]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::meaning::duration, conflicts_with = "load")]
    pub slice: Option<Duration>,
    /// Slices: threads whose CPU time counts: all, or how their names begin
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub threads: Threads,
    /// Where memory is flipped (--live, --design flip), which: anon, heap (of brk), or addresses in hex (whole mappings) such as
    /// 7f00...-7f40...
    #[arg(long, value_name = "RANGE", default_value = "anon")]
    pub range: Span,
    /// A server: what to time while it runs, a command of the shell; in one process it is run once in every slice
    #[arg(long, value_name = "COMMAND")]
    pub load: Option<String>,
    /// Ends well once the server is ready; for 120 s at most, or as long as --budget
    #[arg(long, value_name = "COMMAND", requires = "load")]
    pub ready: Option<String>,
    /// Stops the server [default: SIGTERM]
    #[arg(long, value_name = "COMMAND", requires = "load")]
    pub stop: Option<String>,
    /// Keep finished runs in this file, a line each
    #[arg(long, value_name = "FILE.jsonl")]
    pub log: Option<PathBuf>,
    /// Go on with the finished runs of this file; what earlier looks at its verdicts spent stays spent
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "log")]
    pub resume: Option<PathBuf>,
    /// Verdicts that make the exit code 1
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERDICT,..")]
    pub fail_if: Vec<FailIf>,
    /// A recipe instead of a command: memtest, redis, python, sqlite, compile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "load"], required_unless_present_any = ["command", "live"])]
    pub workload: Option<String>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What starts or changes a program, which a process that runs already is past.
const LIVE_HAS_NO: [&str; 11] = [
    "design",
    "command",
    "workload",
    "arms_file",
    "place",
    "technique",
    "pool",
    "no_pool",
    "ready",
    "stop",
    "ignore_failure",
];

/// How arms take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Design {
    /// Flip for base and thp if all that is judged goes up while the program works, or is told by a load of a server that can be
    /// asked whether it is --ready; slices if it has a place of its own for each arm (`from=` with `{arm}`); otherwise, and where
    /// those turn out not to suit the program, runs
    Auto,
    /// Whole runs in blocks
    Runs,
    /// All arms alive at once, stopped and continued
    Slices,
    /// One process, whose memory changes between base pages and large ones
    Flip,
}

/// Order of the arms within blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// A random order, then the same backwards
    Mirrored,
    /// Another random order in every block
    Random,
}

/// Verdicts that can be asked for by exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailIf {
    /// Some arm is worse than the reference
    Worse,
    /// Some arm did not take effect
    NotInEffect,
    /// It cannot be told
    Unknown,
}
