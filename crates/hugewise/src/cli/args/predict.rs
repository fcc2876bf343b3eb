//! Arguments of `trace` and `predict` as typed. Their doc comments are the help texts and the man page.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use predict::trace::TraceFormat;

/// Arguments of `hugewise trace`.
#[derive(Args, Debug)]
pub struct Trace {
    /// Capture for at most this long; a program that runs longer is ended
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = crate::cli::values::duration)]
    pub budget: Duration,
    /// Step this many instructions in each window
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(2000..=200_000))]
    pub window: u64,
    /// Accept a program that ends with an error
    #[arg(long, short = 'i')]
    pub ignore_failure: bool,
    /// Run this program with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// Arguments of `hugewise predict`.
#[derive(Args, Debug)]
pub struct Predict {
    /// Predict for this CPU of the table, or a machine in a TOML file [default: here, this machine's CPU by the table]
    ///
    /// `list` prints the table's CPUs.
    #[arg(long, value_name = "ID|here|FILE.toml|list")]
    pub machine: Option<String>,
    /// Also run the program for this long on base pages, huge pages and half of each, and scale the prediction by these
    /// runs [default: 3m]
    #[arg(
        long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "3m",
        value_parser = crate::cli::values::duration, conflicts_with = "trace"
    )]
    pub calibrate: Option<Duration>,
    /// Take the accesses from this trace, as `simulate translation` does: a file, or a pipe
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "ignore_failure"])]
    pub trace: Option<PathBuf>,
    /// Read the trace as this: lackey, drmemtrace, champsim, u64 or hugewise [default: by its content]
    #[arg(long, value_name = "FORMAT", requires = "trace", conflicts_with = "command")]
    pub trace_format: Option<TraceFormat>,
    /// Leave out this many accesses at the start of the trace
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "trace",
        conflicts_with = "command"
    )]
    pub warm_up: u64,
    /// Capture for at most this long; a program that runs longer is ended
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = crate::cli::values::duration)]
    pub budget: Duration,
    /// Step this many instructions in each window
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(2000..=200_000))]
    pub window: u64,
    /// Accept a program that ends with an error
    #[arg(long, short = 'i')]
    pub ignore_failure: bool,
    /// Run this program with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
