//! What was typed after `hugewise ps`.

use clap::{Args, ValueEnum};

/// `hugewise ps`
///
/// Resident memory with hugetlb pages, by page kind. Below the table: pages of a pool that no process maps. `?` stands for
/// what could not be looked at.
#[derive(Args, Clone, Debug)]
pub struct Ps {
    /// One process only
    #[arg(value_name = "PID", conflicts_with_all = ["user", "name", "cgroup", "by", "sort", "top", "why"])]
    pub pid: Option<u32>,
    /// Every mapping of that process, and why it is on base pages
    #[arg(long, requires = "pid")]
    pub vmas: bool,
    /// Only processes of this user, by name or id
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Only processes of this name; `*` stands for any text
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,
    /// Only processes in this control group and those below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Sums instead of processes
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "numa")]
    pub by: Option<By>,
    /// Where the pages lie by NUMA node (with PID always)
    #[arg(long)]
    pub numa: bool,
    /// What could be on large pages and is not, and why (with PID always); this reads every mapping of processes with
    /// 16M or more on base pages
    #[arg(long)]
    pub why: bool,
    /// Order of the processes
    #[arg(long, value_enum, default_value = "large")]
    pub sort: Sort,
    /// Show that many processes at most
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Again every so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds, conflicts_with = "output")]
    pub watch: Option<f64>,
}

/// What processes are summed by.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most memory on large pages first
    Large,
    /// Most memory first that could be on large pages and is not (with --why)
    Missed,
    /// Most resident memory first
    Total,
    /// By process id
    Pid,
}

/// From a tenth of a second: each look takes some milliseconds.
fn seconds(text: &str) -> Result<f64, String> {
    let fail = || format!("`{text}` is no number of seconds from 0.1 to 86400");
    let seconds: f64 = text.parse().map_err(|_| fail())?;
    (0.1..=86400.0).contains(&seconds).then_some(seconds).ok_or_else(fail)
}
