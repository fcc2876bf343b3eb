//! Arguments of `compare` as typed. Their doc comments are the help texts and the man page.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use compare::flip::Span;
use compare::place::Place;
use compare::technique::Technique;
use compare::threads::Threads;
use model::Bytes;
use model::compare::{Method, Order, Verdict};

/// The most that --runs takes.
pub const MOST_RUNS: u32 = 10_000;

/// Arguments of `hugewise compare`.
#[derive(Args, Debug)]
pub struct Compare {
    /// Compare these arms, the reference first
    ///
    /// Each is one of base, system, thp-advised, thp, mthp-SIZE, sizes, hugetlb-SIZE, text, or a name from --arms-file.
    /// `sizes` is base and every THP size of this kernel, as mthp-SIZE. During a run of mthp-SIZE, the machine's switch
    /// of that size is on for every program (root, Linux 6.8).
    #[arg(long, value_delimiter = ',', value_name = "ARM,..", default_value = "base,thp")]
    pub arms: Vec<String>,
    /// Define arms of your own
    ///
    /// A TOML table for each arm, with `like`, `kind`, `technique`, `layout`, `share`, `command`, `env`, `unset`, `before`, `after`.
    #[arg(long, value_name = "FILE.toml")]
    pub arms_file: Option<PathBuf>,
    /// Run every arm at each of these places
    ///
    /// One of spread (one CPU of each core), pack (the CPUs of one core), pin=LIST, node:N, interleave.
    #[arg(long, value_delimiter = ';', value_name = "PLACE;..")]
    pub place: Vec<Place>,
    /// Choose how arms get their pages [default: by the program]
    ///
    /// One of switch, tunables, jvm, program, jemalloc, mimalloc, preload, collapse, for thp and hugetlb arms. Without
    /// it the program's file and the THP mode decide, or trial runs where they do not.
    #[arg(long, value_name = "NAME")]
    pub technique: Option<Technique>,
    /// Compare this metric (repeatable) [default: wall]
    ///
    /// One of wall, cpu, user, system, memory, faults, major-faults, waits, preemptions, migrations, instructions,
    /// dtlb-misses, dtlb-mpki, walk-cycles. Or a number that the program or the load prints:
    /// NAME=REGEX[,higher|lower][,from=FILE|cmd:COMMAND]. In slices, a printed number or one with `from=` is a counter,
    /// compared as its rate per CPU second. A command must answer within 10 s. Or, with --workload, one of the recipe's
    /// metrics by name; without this option all of them are compared. --live without --load has no default.
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Choose how arms alternate
    ///
    /// `runs` starts the program again each time. `flip` starts it once and changes its memory between base pages and
    /// THP, as --live does. `slices` keeps all arms alive, one running at a time, and restarts all after four slices of
    /// each. Both need metrics that grow; flip also accepts the time of --load. `auto` uses the first of flip, slices
    /// and runs that fits.
    #[arg(long, default_value = "auto", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["auto", "runs", "slices", "flip"]).map(|word| Method::named(&word)))]
    // Written so, the type is that of one value.
    pub design: std::option::Option<Method>,
    /// Ignore differences below this
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::values::percent, default_value = "1%")]
    pub smallest_effect: f64,
    /// Make this many runs of each arm [default: as needed, up to 30]
    ///
    /// In slices, this many starts.
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: Option<u32>,
    /// Limit the time of all runs [default: 10m, or as long as a verdict takes]
    ///
    /// At most half of it is for warm-up runs. A server must be ready within this time. If it is too short for a verdict, the
    /// first runs show that, and the time needed is reported.
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<Duration>,
    /// Make this many runs of each arm before the first that counts; in slices, after each start
    #[arg(
        long,
        short = 'w',
        alias = "warmup",
        value_name = "N",
        default_value = "1",
        hide_short_help = true
    )]
    pub warm_up: u32,
    /// Choose the order within blocks: mirrored (a random one, then its reverse) or random
    #[arg(long, default_value = "mirrored", hide_short_help = true, hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["mirrored", "random"]).try_map(|word| word.parse::<Order>()))]
    pub order: Order,
    /// Treat an arm as in effect from this coverage on
    ///
    /// Coverage is the share of the program's own memory that is backed by the arm's kind.
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::values::percent, default_value = "50%")]
    pub least_coverage: f64,
    /// Count runs that end with an error, too
    #[arg(long, short = 'i', hide_short_help = true)]
    pub ignore_failure: bool,
    /// Take this much of the pool for hugetlb arms [default: what the first run needs, and a quarter more]
    #[arg(long, value_name = "SIZE", conflicts_with = "no_pool", hide_short_help = true)]
    pub pool: Option<Bytes>,
    /// Never grow a hugetlb pool: use only its free pages
    #[arg(long)]
    pub no_pool: bool,
    /// Compare base and thp in place, in a process that already runs
    #[arg(long, value_name = "PID",
          // What starts or changes a program.
          conflicts_with_all = ["design", "command", "workload", "arms_file", "place", "technique", "pool", "no_pool", "ready", "stop", "load_warm_up", "loads", "ignore_failure"])]
    pub live: Option<u32>,
    /// Set the length of a slice [default: 500ms, in one process 2s]
    ///
    /// In one process with --load a slice lasts as long as the load.
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration, conflicts_with = "load")]
    pub slice: Option<Duration>,
    /// Count CPU time of these threads only
    ///
    /// In slices. `all`, or how the names of the threads begin.
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub threads: Threads,
    /// Change pages of this memory only
    ///
    /// With --live or --design flip. One of anon, heap (of brk), or hex addresses of whole mappings such as 7f00...-7f40...
    #[arg(long, value_name = "RANGE", default_value = "anon")]
    pub range: Span,
    /// Time this shell command against the program, which is a server
    ///
    /// In one process it is run once in every slice.
    #[arg(long, value_name = "COMMAND")]
    pub load: Option<String>,
    /// Wait until this command succeeds: then the server is ready
    ///
    /// For at most 120 s, or as long as --budget. Without a program after `--` this command starts the server, as `pg_ctl start`
    /// does, and ends when it is ready; then --stop is needed.
    #[arg(long, value_name = "COMMAND", requires = "load")]
    pub ready: Option<String>,
    /// Stop the server with this command [default: SIGTERM]
    #[arg(long, value_name = "COMMAND", requires = "load")]
    pub stop: Option<String>,
    /// Run this many uncounted loads after each start [default: 1]
    ///
    /// A server that was just started has cold caches. 0 switches it off.
    #[arg(long, value_name = "N", requires = "load", hide_short_help = true)]
    pub load_warm_up: Option<u32>,
    /// Count this many loads of each start [default: 2]
    ///
    /// A run is one start of the server; its value is the median of its loads. A trend over them is reported.
    #[arg(long, value_name = "N", requires = "load", hide_short_help = true,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub loads: Option<u32>,
    /// Save finished runs in this file, one per line
    #[arg(long, value_name = "FILE.jsonl")]
    pub log: Option<PathBuf>,
    /// Continue with the finished runs of this file
    ///
    /// The share of the error rate that earlier looks spent stays spent.
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "log")]
    pub resume: Option<PathBuf>,
    /// Exit with 1 on worse, inconclusive, not-in-effect, unknown
    #[arg(long, value_delimiter = ',', value_name = "VERDICT,..", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(BAD_NEWS).map(|word| bad_news(&word)))]
    pub fail_if: Vec<Verdict>,
    /// Report the smallest difference that a comparison of this time can detect here
    ///
    /// The program is compared with itself: up to 36 blocks of three runs, within this time.
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration,
          conflicts_with_all = ["runs", "budget", "arms", "arms_file", "technique", "live", "load", "ready", "stop", "load_warm_up", "loads", "workload",
                                "design", "resume", "pool", "least_coverage", "slice", "threads", "range"])]
    pub what_can_be_seen: Option<Duration>,
    #[arg(
        long,
        value_name = "NAME[:VARIANT,..]",
        conflicts_with_all = ["command", "load", "ready", "stop"],
        help = concat!("Run a recipe instead: ", env!("HUGEWISE_RECIPES")),
        long_help = concat!(
            "Run a recipe instead: ",
            env!("HUGEWISE_RECIPES"),
            "\n\nWith a variant and parameters: oltp:order-entry,clients=4 or jbb:heap=2g,gc=G1. Or a recipe of your own, by the \
             path of its directory or file: ./mine or ./mine.toml:size=2g. Only you and root may be able to change it."
        )
    )]
    pub workload: Option<String>,
    /// Compare these shell commands with each other, the first one as the reference
    ///
    /// Each is one word of the shell, in quotes: 'sort -n big' 'sort -n --parallel=1 big'. Their runs alternate. The
    /// result also has the pages, CPUs and memory of each.
    #[arg(value_name = "SHELL COMMAND",
          // What is about one program.
          conflicts_with_all = ["arms", "arms_file", "technique", "least_coverage", "pool", "no_pool", "live", "slice", "threads", "range", "load", "ready", "stop",
                                "load_warm_up", "loads", "workload", "command"])]
    pub commands: Vec<String>,
    /// Run this program with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub between: Between,
}

/// Options about shell commands that are compared with each other.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for shell commands")]
pub struct Between {
    /// Call the commands by these names, in their order (repeatable)
    #[arg(long, short = 'n', value_name = "NAME", hide_short_help = true)]
    pub command_name: Vec<String>,
    /// Start the commands without a shell
    #[arg(long, short = 'N', conflicts_with = "shell", hide_short_help = true)]
    pub no_shell: bool,
    /// Start the commands by this shell [default: /bin/sh]
    #[arg(long, short = 'S', value_name = "SHELL", hide_short_help = true)]
    pub shell: Option<String>,
    /// Run this before each run, outside of its time (repeatable: one for each command)
    #[arg(long, short = 'p', value_name = "COMMAND", hide_short_help = true)]
    pub prepare: Vec<String>,
    /// Run this after each run, outside of its time (repeatable: one for each command)
    #[arg(long, short = 'C', value_name = "COMMAND", hide_short_help = true)]
    pub conclude: Vec<String>,
    /// Run this after all runs, once for each command (repeatable: one for each)
    #[arg(long, short = 'c', value_name = "COMMAND", hide_short_help = true)]
    pub cleanup: Vec<String>,
    /// Replace {VAR} in the commands by each of these values (repeatable)
    #[arg(long, short = 'L', num_args = 2, value_names = ["VAR", "VALUE,.."], allow_hyphen_values = true, hide_short_help = true)]
    pub parameter_list: Vec<String>,
    /// Replace {VAR} in the commands by each number from MIN to MAX
    #[arg(long, short = 'P', num_args = 3, value_names = ["VAR", "MIN", "MAX"], hide_short_help = true,
          allow_negative_numbers = true)]
    pub parameter_scan: Vec<String>,
    /// Use this step in --parameter-scan
    #[arg(
        long,
        short = 'D',
        value_name = "DELTA",
        default_value = "1",
        requires = "parameter_scan",
        hide_short_help = true
    )]
    pub parameter_step_size: String,
    /// Also write the times as hyperfine's --export-json does
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub export_json: Option<PathBuf>,
}

const BAD_NEWS: [&str; 4] = ["worse", "inconclusive", "not-in-effect", "unknown"];

fn bad_news(word: &str) -> Verdict {
    Verdict::named(&word.replace('-', " ")).unwrap_or(Verdict::Unknown)
}
