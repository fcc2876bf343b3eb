//! Arguments of `ps` as typed. Their doc comments are the help texts and the man page.

use clap::{Args, ValueEnum};

/// Arguments of `hugewise ps`.
#[derive(Args, Clone, Debug, Default)]
pub struct Ps {
    /// Report one process only
    #[arg(value_name = "PID", conflicts_with_all = ["user", "name", "cgroup", "by", "sort", "top"], value_parser = crate::cli::values::pid)]
    pub pid: Option<u32>,
    /// List every mapping of that process, and why it is on base pages
    #[arg(long, requires = "pid", conflicts_with_all = ["user", "name", "cgroup", "by", "sort", "top"])]
    pub vmas: bool,
    /// Report only processes of this user, by name or id
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Report only processes of this name; `*` matches any text
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
    /// Report only processes in this control group and those below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Sum processes by cgroup, container, unit, vm or user
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "numa",
        hide_possible_values = true
    )]
    pub by: Option<By>,
    /// Split the pages by NUMA node; always with PID
    #[arg(long)]
    pub numa: bool,
    /// Report memory that huge pages could back but do not, and why; always with PID
    ///
    /// Reads every mapping of processes with 16M or more on base pages.
    #[arg(long)]
    pub why: bool,
    /// Sort by large, missed, total or pid
    #[arg(long, value_enum, default_value = "large", hide_possible_values = true)]
    pub sort: Sort,
    /// Show at most this many processes
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Repeat every 2 seconds, or every SECONDS, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds, conflicts_with = "output")]
    pub watch: Option<f64>,
}

/// Groups by which processes are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Control group, each with those below it
    Cgroup,
    /// Container
    Container,
    /// systemd unit
    Unit,
    /// Virtual machine
    Vm,
    /// User
    User,
}

/// Order of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most memory on huge pages first
    #[default]
    Large,
    /// Most memory first that huge pages could back but do not (with --why)
    Missed,
    /// Most resident memory first
    Total,
    /// By process id
    Pid,
}

/// At least a tenth of a second: each reading takes some milliseconds.
fn seconds(text: &str) -> Result<f64, String> {
    let fail = || format!("`{text}` is no number of seconds from 0.1 to 86400");
    let seconds: f64 = text.parse().map_err(|_| fail())?;
    (0.1..=86400.0).contains(&seconds).then_some(seconds).ok_or_else(fail)
}
